/* SPDX-License-Identifier: Apache-2.0 */
/* Which code makes the rows of a pipeline, and what when it cannot be made. */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/log.h"
#include "loader/run/jit/compiler.h"
#include "loader/run/jit/jit.h"
#include "loader/run/transform/phases.h"
#include "tests/unit/fields.h"
#include "tests/unit/t.h"

enum { W = 37, H = 11 };

static const struct pipeline_field fields[] = {
	FIELD_IMAGE(W, H),
	FIELD_LABEL,
};

static char dir[] = "/tmp/test_jit-XXXXXX";
static char error[600], logged[600];
static struct log silence;
static uint8_t pixels[H * W * 3];

static void on_log(void *arg, enum beton_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(logged, sizeof(logged), "%s", message);
}

static struct phases *parse(const char *text)
{
	struct phases *p;

	error[0] = logged[0] = '\0';
	CHECK(!phases_parse(text, fields, ARRAY_LEN(fields), &p, error,
			    sizeof(error)));
	return p;
}

/* The number of calls until opening is interrupted; 0: never. */
static int patience;

static bool is_interrupted(void *left)
{
	return *(int *)left && !--*(int *)left;
}

static int compile(struct phases *p)
{
	const struct jit_options options = { .log = &silence,
					     .interrupted = is_interrupted,
					     .interrupted_arg = &patience };

	return phases_compile(p, &options, error, sizeof(error));
}

static int run_phase(const struct pipeline *p, uint64_t id, void *out)
{
	const struct pipeline_value v = { .bytes = pixels,
					  .size = sizeof(pixels),
					  .mode = BETON_MODE_RAW,
					  .width = W,
					  .height = H };
	const struct pipeline_row row = { .seed = 1, .id = id };
	struct pipeline_worker *w;
	int r;

	CHECK(!pipeline_worker_open(p, &w));
	r = pipeline_run(p, w, 0, &v, &row, BETON_STAGE_ALL, out, NULL);
	if (r)
		snprintf(error, sizeof(error), "%s",
			 pipeline_worker_message(w));
	pipeline_worker_close(w);
	return r;
}

static int run(const struct phases *p, uint64_t id, void *out)
{
	return run_phase(phases_row(p, 0), id, out);
}

/* The engine of the first output once the text is compiled. */
static const char *engine_of(const char *text)
{
	struct phases *p = parse(text);
	const char *engine;

	CHECK(!compile(p));
	engine = pipeline_engine(phases_row(p, 0), 0);
	phases_close(p);
	return engine;
}

static bool has_compiler(void)
{
	struct compiler c;

	return !compiler_find(&c);
}

static void count_compilations(void)
{
	char path[64], real[128];
	struct compiler c;
	FILE *f;

	unsetenv("BETON_CC");
	CHECK(!compiler_find(&c));
	snprintf(path, sizeof(path), "%s/cc", dir);
	snprintf(real, sizeof(real), "%.100s", c.path);
	f = fopen(path, "w");
	CHECK(f && fprintf(f, "#!/bin/sh\necho >> %s/count\nexec %s \"$@\"\n",
			   dir, real) > 0);
	CHECK(!fclose(f) && !chmod(path, 0755));
	setenv("BETON_CC", path, 1);
}

static long compilations(void)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "%s/count", dir);
	return stat(path, &st) ? 0 : (long)st.st_size;
}

static void standard_chains_need_no_compiler(void)
{
	setenv("BETON_JIT", "wait", 1);
	CHECK(!strcmp(engine_of("flip | normalize(0.1, 0.2) | chw"),
		      "prebuilt"));
	CHECK(!strcmp(engine_of("flip"), "none"));
	CHECK(!strcmp(engine_of("label | float; image | drop"), "none"));
	CHECK(compilations() == 0);
}

static void others_are_compiled_once(void)
{
	CHECK(!strcmp(engine_of("invert | half"), "generated"));
	CHECK(compilations() == 1);
	CHECK(!strcmp(engine_of("invert | half"), "generated"));
	/* Neither numbers nor geometry nor names matter. */
	CHECK(!strcmp(engine_of("x = image | flip | invert(0.3) | half"),
		      "generated"));
	CHECK(compilations() == 1);
	CHECK(!strcmp(engine_of("invert | half | chw"), "generated"));
	CHECK(compilations() == 2);
}

/* Checks all phases of a text whose code no cache holds. */
static void check_shared(const char *text, size_t count)
{
	struct phases *p = parse(text);
	long before = compilations();

	setenv("BETON_CACHE_DIR", "/dev/null", 1);
	CHECK(!compile(p));
	for (size_t i = 0; i < count; i++) {
		const struct pipeline *phase = phases_row(p, i);

		/* In the background all get it when one has it. */
		while (!strcmp(pipeline_engine(phase, 0), "generic"))
			sched_yield();
		CHECK(!strcmp(pipeline_engine(phase, 0), "generated"));
	}
	CHECK(!phases_row(p, count) && compilations() == before + 1);
	phases_close(p);
	setenv("BETON_CACHE_DIR", dir, 1);
}

static void epochs_share_their_code(void)
{
	static const char text[] = "resize(\"0=8,3=9,7\") | "
				   "saturation(\"0=0,4=0.3,7=1\") | int32";

	setenv("BETON_JIT", "wait", 1);
	check_shared(text, 4);
	setenv("BETON_JIT", "background", 1);
	check_shared(text, 4);
}

static void rows_are_the_same_by_any_code(void)
{
	static const char text[] = "flip | brightness(0.5) | saturation(0.7) | "
				   "normalize(imagenet) | chw";
	static const char *const modes[] = { "off", "wait", "background" };
	static float out[3][20][3 * H * W];

	for (size_t i = 0; i < 3; i++) {
		struct phases *p;

		setenv("BETON_JIT", modes[i], 1);
		p = parse(text);
		CHECK(!compile(p));
		for (uint64_t id = 0; id < 20; id++)
			CHECK(!run(p, id, out[i][id]));
		CHECK(!strcmp(pipeline_engine(phases_row(p, 0), 0),
			      i ? "generated" : "generic"));
		phases_close(p);
	}
	CHECK(!memcmp(out[0], out[1], sizeof(out[0])));
	CHECK(!memcmp(out[0], out[2], sizeof(out[0])));
}

static void use_compiler(const char *script)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/other", dir);
	f = fopen(path, "w");
	CHECK(f && fprintf(f, "#!/bin/sh\n%s\n", script) > 0);
	CHECK(!fclose(f) && !chmod(path, 0755));
	setenv("BETON_CC", path, 1);
}

/* Closing ends a compiler that is at work. */
static void no_thread_waits_for_the_background(void)
{
	struct phases *p;

	use_compiler("exec sleep 600");
	setenv("BETON_JIT", "background", 1);
	p = parse("solarize | int32; image2 = image | solarize | int64");
	CHECK(!compile(p));
	CHECK(!strcmp(pipeline_engine(phases_row(p, 0), 0), "generic"));
	phases_close(p);
	count_compilations();
}

static void a_compiler_that_fails_is_done_without(void)
{
	setenv("BETON_JIT", "wait", 1);
	setenv("BETON_CC", "/bin/false", 1);
	CHECK(!strcmp(engine_of("posterize(3) | int32"), "generic"));
	CHECK(strstr(logged, "/bin/false"));
	unsetenv("BETON_CC");
	count_compilations();
}

static void write_file(const char *name, const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static void own_operations_see_a_pixel_and_its_place(void)
{
	static float out[H][W][3];
	struct phases *p;

	write_file("own.c",
		   "static void mark(float v[3], const struct beton_at *at,\n"
		   "\tfloat a, float b)\n"
		   "{\n"
		   "\tv[0] = at->x + 1000 * at->y;\n"
		   "\tv[1] = a + b * v[1];\n"
		   "\tv[2] = at->width * 100 + at->height + at->random[3];\n"
		   "}\n");
	p = parse("flip(1) | float | \"own.c\".mark(0.25, -2)");
	CHECK(run(p, 0, out) == -ENOSYS && strstr(error, "not been compiled"));
	CHECK(!compile(p));
	CHECK(!strcmp(pipeline_engine(phases_row(p, 0), 0), "generated"));
	CHECK(!run(p, 0, out));
	for (size_t y = 0; y < H; y++) {
		for (size_t x = 0; x < W; x++) {
			uint8_t v = pixels[3 * (y * W + W - 1 - x) + 1];

			CHECK(out[y][x][0] == (float)(x + 1000 * y));
			CHECK(out[y][x][1] == 0.25F - 2 * (float)v);
			CHECK(out[y][x][2] >= W * 100 + H &&
			      out[y][x][2] < W * 100 + H + 1 &&
			      out[y][x][2] == out[0][0][2]);
		}
	}
	phases_close(p);
}

static void own_operations_change_with_the_epoch(void)
{
	static const char text[] = "resize(\"0=3,3,2=2,6\") | float | "
				   "\"own.c\".mark(\"0=0.5,5=7\", 1)";
	static const float want[][2] = { { 0.5, 303 },
					 { 0.5, 602 },
					 { 7, 602 } };
	float out[2 * 6][3];
	struct phases *p;

	write_file("own.c",
		   "static void mark(float v[3], const struct beton_at *at,\n"
		   "\tfloat a, float b)\n"
		   "{\n"
		   "\tv[0] = a;\n"
		   "\tv[1] = at->width * 100 + at->height;\n"
		   "}\n");
	check_shared(text, 3);
	p = parse(text);
	CHECK(!compile(p));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		CHECK(!run_phase(phases_row(p, i), 0, out));
		CHECK(out[1][0] == want[i][0] && out[1][1] == want[i][1]);
	}
	phases_close(p);
}

static void own_results_are_limited_where_they_are_bytes(void)
{
	static uint8_t out[H][W][3];
	struct phases *p;

	write_file("own.c",
		   "static void mark(float v[3], const struct beton_at *at)\n"
		   "{\n"
		   "\tv[0] = 300; v[1] = -1; v[2] = 7.9f;\n"
		   "}\n");
	p = parse("\"own.c\".mark");
	CHECK(!compile(p) && !run(p, 0, out));
	CHECK(out[3][4][0] == 255 && !out[3][4][1] && out[3][4][2] == 7);
	phases_close(p);
}

static void check_own_error(const char *text, const char *want)
{
	struct phases *p = parse(text);
	int r = compile(p);

	CHECK(r == -EINVAL || r == -ENOSYS);
	if (!strstr(error, want))
		fprintf(stderr, "%s: %s\n", text, error);
	CHECK(strstr(error, want));
	phases_close(p);
}

static void mistakes_in_own_operations_are_reported_with_their_line(void)
{
	struct phases *p;

	write_file("bad.c", "#include <math.h>\n\n"
			    "static void f(float v[3],\n"
			    "\tconst struct beton_at *at)\n"
			    "{\n"
			    "\tv[0] = sqrtf(v[0]);\n"
			    "\tv[1] = nothing;\n"
			    "}\n");
	check_own_error("\"bad.c\".f", "column 1: f of bad.c: bad.c:7:");
	check_own_error("flip | \"none.c\".f",
			"column 8: cannot read none.c: No such file");
	check_own_error("\"own.c\".mark(1)", "too many arguments");
	check_own_error("\"own.c\".absent", "absent");
	check_own_error("\".\".f", "cannot read .");
	write_file("inc.c", "\n# include \"own.c\"\n");
	check_own_error("\"inc.c\".f", "inc.c:2: only headers in <>");
	setenv("BETON_CC", "/no/such", 1);
	check_own_error("\"own.c\".mark", "there is no C compiler");
	setenv("BETON_JIT", "off", 1);
	check_own_error("\"own.c\".mark", "BETON_JIT is off");
	setenv("BETON_JIT", "of", 1);
	p = parse("flip");
	CHECK(compile(p) == -EINVAL && !*error);
	phases_close(p);
	CHECK(strstr(logged, "background, wait and off"));
	setenv("BETON_JIT", "wait", 1);
	count_compilations();
}

static void check_interrupted(const char *mode, const char *text)
{
	struct phases *p = parse(text);

	setenv("BETON_JIT", mode, 1);
	patience = 3;
	CHECK(compile(p) == -ECANCELED);
	CHECK(!patience && !*error && !*logged);
	phases_close(p);
}

/* A thread that waits for the compiler can be interrupted. */
static void opening_can_be_interrupted(void)
{
	use_compiler("exec sleep 600");
	write_file("own.c", "static void slow(float *v, const void *at) {}\n");
	check_interrupted("background", "\"own.c\".slow");
	check_interrupted("wait", "\"own.c\".slow");
	check_interrupted("wait", "solarize | int32");
	setenv("BETON_JIT", "wait", 1);
	count_compilations();
}

static void a_changed_file_is_compiled_again(void)
{
	long before = compilations();

	write_file("own.c", "static void f(float *v, const void *at) {}\n");
	CHECK(!strcmp(engine_of("\"own.c\".f"), "generated"));
	CHECK(!strcmp(engine_of("\"own.c\".f"), "generated"));
	CHECK(compilations() == before + 1);
	write_file("own.c", "static void f(float *v, const void *at) { }\n");
	CHECK(!strcmp(engine_of("\"own.c\".f"), "generated"));
	CHECK(compilations() == before + 2);
}

/* All that can be written to runs nothing. */
static void a_noexec_file_system_does_not_matter(void)
{
	char inner[64];

	snprintf(inner, sizeof(inner), "%s/noexec", dir);
	CHECK(!mkdir(inner, 0700));
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", inner, "tmpfs", MS_NOEXEC, "mode=0700")) {
		printf("skip: mounting: %s\n", strerror(errno));
		return;
	}
	setenv("BETON_CACHE_DIR", inner, 1);
	setenv("TMPDIR", inner, 1);
	CHECK(!strcmp(engine_of("invert | int64"), "generated"));
	CHECK(!strcmp(engine_of("invert | int64"), "generated"));
	CHECK(!umount(inner));
	unsetenv("TMPDIR");
	setenv("BETON_CACHE_DIR", dir, 1);
}

static int count_temporary(struct dl_phdr_info *info, size_t size, void *count)
{
	(void)size;
	*(int *)count += strstr(info->dlpi_name, "/tmp/beton-kernel-") != NULL;
	return 0;
}

/* Another user may replace the file if /tmp has no sticky bit. */
static void no_library_is_loaded_by_the_name_of_a_temporary_file(void)
{
	int count = 0;
	char command[64];
	struct phases *p;

	setenv("BETON_PERF", "1", 1);
	p = parse("invert | half");
	CHECK(!compile(p));
	CHECK(!strcmp(pipeline_engine(phases_row(p, 0), 0), "generated"));
	dl_iterate_phdr(count_temporary, &count);
	CHECK(!count);
	phases_close(p);
	unsetenv("BETON_PERF");
	snprintf(command, sizeof(command), "rm /tmp/beton-kernel-%d-*.so",
		 (int)getpid());
	CHECK(!system(command));
}

int main(void)
{
	char command[64];

	if (!has_compiler()) {
		printf("skip: no compiler\n");
		return 0;
	}
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)(i * 2654435761U >> 24);
	CHECK(mkdtemp(dir) && !chdir(dir));
	log_init(&silence, on_log, NULL);
	setenv("BETON_CACHE_DIR", dir, 1);
	count_compilations();
	standard_chains_need_no_compiler();
	others_are_compiled_once();
	epochs_share_their_code();
	rows_are_the_same_by_any_code();
	no_thread_waits_for_the_background();
	a_compiler_that_fails_is_done_without();
	own_operations_see_a_pixel_and_its_place();
	own_operations_change_with_the_epoch();
	own_results_are_limited_where_they_are_bytes();
	mistakes_in_own_operations_are_reported_with_their_line();
	opening_can_be_interrupted();
	a_changed_file_is_compiled_again();
	a_noexec_file_system_does_not_matter();
	no_library_is_loaded_by_the_name_of_a_temporary_file();
	log_fini(&silence);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK(!system(command));
	return 0;
}
