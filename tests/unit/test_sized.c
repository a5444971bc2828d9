/* SPDX-License-Identifier: Apache-2.0 */
/* Options of callers that were compiled for another version of the library. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "beton/dataset.h"
#include "beton/loader.h"
#include "beton/writer.h"
#include "loader/sized.h"
#include "tests/unit/t.h"

static char path[] = "/tmp/sized.XXXXXX";

struct now {
	size_t size;
	uint64_t number;
	const char *text;
};

static void members_that_the_caller_lacks_are_zero(void)
{
	const struct now old = { offsetof(struct now, text), 7, "not his" };
	struct now o = { 1, 1, "old" };

	CHECK(!sized_take(&o, sizeof(o), &old, sizeof(size_t)));
	CHECK(o.size == sizeof(o) && o.number == 7 && !o.text);
	CHECK(sized_take(&o, sizeof(o), &old, sizeof(old)) == -EINVAL);
}

static void members_that_the_library_lacks_must_be_zero(void)
{
	struct {
		struct now now;
		uint64_t later;
	} caller = { { sizeof(caller), 7, "text" }, 0 };
	struct now o;

	CHECK(!sized_take(&o, sizeof(o), &caller, sizeof(size_t)));
	CHECK(o.size == sizeof(o) && o.number == 7 && o.text);
	/* Only the last byte is set: all of them are looked at. */
	caller.later = (uint64_t)1 << 56;
	CHECK(sized_take(&o, sizeof(o), &caller, sizeof(size_t)) == -EINVAL);
}

static void sizes_of_no_version_are_refused(void)
{
	static const size_t bad[] = {
		0, 1, 7, 9, sizeof(struct now) - 1, SIZED_MAX + 8, SIZE_MAX - 7
	};
	static struct {
		struct now now;
		char zeros[SIZED_MAX];
	} caller;
	struct now o;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		caller.now.size = bad[i];
		CHECK(sized_take(&o, sizeof(o), &caller, sizeof(size_t)) ==
		      -EINVAL);
	}
	caller.now.size = SIZED_MAX;
	CHECK(!sized_take(&o, sizeof(o), &caller, sizeof(size_t)));
}

/* A struct of options as a later version has it. */
#define LATER(type)                                                            \
	struct {                                                               \
		struct type options;                                           \
		uint64_t later;                                                \
	}

static int open_writer(const void *options)
{
	const struct beton_writer_field f = { .name = "label",
					      .type = BETON_TYPE_INT };
	const struct beton_writer_value v = { .integer = 3 };
	struct beton_writer *w;
	int r = beton_writer_open(path, &f, 1, 1, options, &w);

	if (r)
		return r;
	CHECK(!beton_writer_append(w, &v) && !beton_writer_finish(w));
	return 0;
}

static void writers_take_all_sizes(void)
{
	LATER(beton_writer_options) o = { .options = { .size = sizeof(o) } };

	CHECK(!open_writer(&o));
	o.later = 1;
	CHECK(open_writer(&o) == -EINVAL);
	o.options.size = sizeof(o.options);
	CHECK(!open_writer(&o));
	/* The page size is no power of two, but not the caller's either. */
	o.options.page_size = 3;
	CHECK(open_writer(&o) == -EINVAL);
	o.options.size = offsetof(struct beton_writer_options, page_size);
	CHECK(!open_writer(&o));
	o.options.size = 0;
	CHECK(open_writer(&o) == -EINVAL);
}

static int open_dataset(const char *name, const void *options)
{
	struct beton_dataset *ds = NULL;
	int r = beton_dataset_open(name, options, &ds);

	CHECK(r || beton_dataset_samples(ds) == 1);
	beton_dataset_close(ds);
	return r;
}

static void datasets_take_all_sizes(void)
{
	char why[64] = "";
	LATER(beton_dataset_options)
	o = { .options = { .size = sizeof(o),
			   .error = why,
			   .error_size = sizeof(why) } };

	CHECK(!open_dataset(path, &o));
	CHECK(open_dataset("/proc/none", &o) == -ENOENT && *why);
	o.later = 1;
	CHECK(open_dataset(path, &o) == -EINVAL);
	*why = 0;
	o.options.size = offsetof(struct beton_dataset_options, error);
	CHECK(!open_dataset(path, &o));
	CHECK(open_dataset("/proc/none", &o) == -ENOENT && !*why);
	o.options.size = 0;
	CHECK(open_dataset(path, &o) == -EINVAL);
}

static int open_loader(const void *options)
{
	struct beton_loader *l = NULL;
	int r = beton_loader_open(path, options, &l);

	beton_loader_close(l);
	return r;
}

static void loaders_take_all_sizes(void)
{
	char why[128] = "";
	LATER(beton_loader_options)
	o = { .options = { .size = sizeof(o),
			   .spec = "batch=1",
			   .workers = 1,
			   .error = why,
			   .error_size = sizeof(why) } };

	CHECK(!open_loader(&o));
	o.later = 1;
	CHECK(open_loader(&o) == -EINVAL);
	o.options.size = offsetof(struct beton_loader_options, trace);
	/* There is no such device, but the member is not the caller's. */
	o.options.device = "abacus";
	CHECK(!open_loader(&o));
	o.options.size = sizeof(o.options);
	CHECK(open_loader(&o) == -EINVAL && strstr(why, "abacus"));
	o.options.size = offsetof(struct beton_loader_options, log);
	CHECK(open_loader(&o) == -EINVAL);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd));
	members_that_the_caller_lacks_are_zero();
	members_that_the_library_lacks_must_be_zero();
	sizes_of_no_version_are_refused();
	writers_take_all_sizes();
	datasets_take_all_sizes();
	loaders_take_all_sizes();
	CHECK(!unlink(path));
	return 0;
}
