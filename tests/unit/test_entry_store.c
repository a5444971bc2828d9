/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/entry_store.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/codec/index.h"
#include "loader/image/jpeg/baseline.h"
#include "loader/image/jpeg/entry_record.h"
#include "loader/run/transform/pipeline.h"
#include "tests/unit/encoded.h"
#include "tests/unit/fields.h"
#include "tests/unit/t.h"

enum { SIZE = 4 << 20, SAMPLES = 12, EPOCHS = 4, ROW_SIZE = 3 * 64 * 64 };

static struct baseline *baseline;

static struct baseline_image header(struct jpeg jpeg)
{
	struct baseline_image image;

	CHECK(!baseline_header(baseline, jpeg.bytes, jpeg.size, &image));
	return image;
}

static struct entry_store *opened(uint64_t size)
{
	const struct entry_store_options options = { .size = size };
	struct entry_store *s;

	CHECK(!entry_store_open(&options, &s));
	return s;
}

static void a_sample_has_one_record(void)
{
	struct entry_store *s = opened(SIZE);
	struct jpeg jpeg = encode(&KIND_PHOTO);
	struct baseline_image image = header(jpeg);
	struct entry_record *record = entry_store_get(s, 0, 7, &image);

	CHECK(record && !entry_record_rows(record));
	CHECK(entry_store_get(s, 0, 7, &image) == record);
	CHECK(entry_store_get(s, 0, 8, &image) != record);
	CHECK(entry_store_get(s, 1, 7, &image) != record);
	entry_store_close(s);
	entry_store_close(NULL);
	free(jpeg.bytes);
}

static struct entry_store_stats stats_of(const struct entry_store *s)
{
	struct entry_store_stats stats;

	entry_store_stats(s, &stats);
	return stats;
}

/* A hit has entries. The record of an image that was not decoded has none. */
static void images_with_entries_are_hits(void)
{
	const struct rect part = { .width = 100, .height = 60 };
	struct baseline_plane planes[BASELINE_COMPONENTS];
	struct entry_store *s = opened(SIZE);
	struct jpeg jpeg = encode(&KIND_PHOTO);
	struct baseline_image image = header(jpeg);
	struct entry_record *record = entry_store_get(s, 0, 7, &image);

	CHECK(entry_store_get(s, 0, 7, &image) == record);
	CHECK(!stats_of(s).hits && stats_of(s).records == 1);
	CHECK(!baseline_decode_recorded(baseline, &image, &part, 0, record,
					planes));
	CHECK(entry_store_get(s, 0, 8, &image));
	for (int i = 0; i < 3; i++)
		CHECK(entry_store_get(s, 0, 7, &image) == record);
	CHECK(stats_of(s).hits == 3 && stats_of(s).records == 2);
	CHECK(stats_of(s).used > 0 && stats_of(s).used <= stats_of(s).size);
	CHECK(!stats_of(NULL).size && !stats_of(NULL).hits);
	entry_store_close(s);
	free(jpeg.bytes);
}

static void other_images_have_no_record(void)
{
	struct kind small = KIND_PHOTO, restart = KIND_PHOTO,
		    other = KIND_PHOTO;
	struct entry_store *s = opened(SIZE);
	struct jpeg jpegs[4];
	struct baseline_image images[4];

	small.width = small.height = 112;
	restart.restart = 8;
	other.quality = 89;
	jpegs[0] = encode(&small);
	jpegs[1] = encode(&restart);
	jpegs[2] = encode(&KIND_PHOTO);
	jpegs[3] = encode(&other);
	for (int i = 0; i < 4; i++)
		images[i] = header(jpegs[i]);
	CHECK(!entry_store_get(s, 0, 1, &images[0]));
	CHECK(!entry_store_get(s, 0, 1, &images[1]));
	CHECK(entry_store_get(s, 0, 1, &images[2]));
	CHECK(!entry_store_get(s, 0, 1, &images[3]));
	CHECK(entry_store_get(s, 0, 1, &images[2]));
	for (int i = 0; i < 4; i++)
		free(jpegs[i].bytes);
	entry_store_close(s);
}

/* Returns the number of samples that have a record. */
static int count_records(struct entry_store *s,
			 const struct baseline_image *image, int n)
{
	int records = 0;

	for (int id = 0; id < n; id++)
		records += entry_store_get(s, 0, (uint64_t)id, image) != NULL;
	return records;
}

static void a_full_store_adds_no_records(void)
{
	struct entry_store *s = opened(1);
	struct jpeg jpeg = encode(&KIND_PHOTO);
	struct baseline_image image = header(jpeg);
	int n = count_records(s, &image, 1000);

	CHECK(n > 10 && n < 100);
	CHECK(count_records(s, &image, 1000) == n);
	entry_store_close(s);
	free(jpeg.bytes);
}

struct limit {
	uint64_t left;
	uint64_t taken;
	int refused;
};

static bool take(void *arg, uint64_t bytes)
{
	struct limit *limit = arg;

	if (bytes > limit->left) {
		limit->refused++;
		return false;
	}
	limit->left -= bytes;
	limit->taken += bytes;
	return true;
}

static void records_are_within_the_limit_of_the_caller(void)
{
	struct limit limit = { .left = 600000 };
	const struct entry_store_options options = { SIZE, take, &limit };
	struct jpeg jpeg = encode(&KIND_PHOTO);
	struct baseline_image image = header(jpeg);
	struct entry_scan scan = baseline_scan(&image);
	struct entry_store *s;
	int n;

	CHECK(!entry_store_open(&options, &s));
	CHECK(!limit.taken);
	CHECK(entry_store_get(s, 0, 0, &image));
	CHECK(limit.taken && limit.left);
	n = count_records(s, &image, 2000);
	CHECK((uint64_t)n * entry_record_size(&scan) <= limit.taken);
	CHECK((uint64_t)n * entry_record_size(&scan) > limit.taken / 2);
	CHECK(limit.refused == 1 && limit.taken <= 600000);
	CHECK(count_records(s, &image, 2000) == n && limit.refused == 1);
	entry_store_close(s);
	free(jpeg.bytes);
}

/* --- pipelines --- */

static const struct pipeline_field field = FIELD_IMAGE(300, 200);
static struct pipeline_value values[SAMPLES];
static uint8_t rows[EPOCHS][SAMPLES][ROW_SIZE];
static int results[EPOCHS][SAMPLES];

/* Adds an index to a JPEG. */
static void add_index(struct jpeg *jpeg)
{
	struct codec_indexer *indexer;
	struct jpeg with;

	CHECK(!codec_indexer_open(&indexer));
	CHECK(!codec_index(indexer, jpeg->bytes, jpeg->size, 8, &with.bytes,
			   &with.size));
	codec_indexer_close(indexer);
	free(jpeg->bytes);
	*jpeg = with;
}

/* A quarter is damaged, and a third has an index. */
static void make_values(void)
{
	struct kind kind = KIND_PHOTO;
	struct rng rng = { .key = 3 };

	for (int i = 0; i < SAMPLES; i++) {
		struct jpeg jpeg;

		kind.across = 1 + i % 2;
		kind.quality = 80 + i;
		jpeg = encode(&kind);
		if (i % 3 == 2)
			add_index(&jpeg);
		if (i % 4 == 3)
			jpeg.size -= below(&rng, (uint32_t)jpeg.size / 2);
		values[i] = (struct pipeline_value){
			.bytes = jpeg.bytes,
			.size = jpeg.size,
			.mode = BETON_MODE_JPG,
			.width = kind.width,
			.height = kind.height,
		};
	}
}

static struct pipeline *parsed(const char *text, struct entry_store *s)
{
	struct pipeline *p;
	char error[256];

	CHECK(!pipeline_parse(text, &field, 1, 0, &p, error, sizeof(error)));
	CHECK(pipeline_output_at(p, 0)->row_size == ROW_SIZE);
	pipeline_keep_entries(p, s);
	return p;
}

static int run(const struct pipeline *p, struct pipeline_worker *w,
	       unsigned epoch, unsigned id, uint8_t *out)
{
	const struct pipeline_row row = { .seed = 1, .epoch = epoch, .id = id };

	return pipeline_run(p, w, 0, &values[id], &row, BETON_STAGE_ALL, out,
			    NULL);
}

static void run_plain(const char *text)
{
	struct pipeline *p = parsed(text, NULL);
	struct pipeline_worker *w;

	CHECK(!pipeline_worker_open(p, &w));
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned id = 0; id < SAMPLES; id++)
			results[epoch][id] =
				run(p, w, epoch, id, rows[epoch][id]);
	pipeline_worker_close(w);
	pipeline_close(p);
}

/* Each thread runs all samples; some of them at the same time. */
static void *run_keeping(void *arg)
{
	static _Thread_local uint8_t out[ROW_SIZE];
	const struct pipeline *p = arg;
	struct pipeline_worker *w;

	CHECK(!pipeline_worker_open(p, &w));
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned id = 0; id < SAMPLES; id++) {
			int r = run(p, w, epoch, id, out);

			CHECK(r == results[epoch][id]);
			CHECK(r || !memcmp(out, rows[epoch][id], ROW_SIZE));
		}
	pipeline_worker_close(w);
	return NULL;
}

static int count_rows(struct entry_store *s)
{
	struct baseline_image image;
	int n = 0;

	for (unsigned id = 0; id < SAMPLES; id++) {
		CHECK(!baseline_header(baseline, values[id].bytes,
				       values[id].size, &image));
		n += (int)entry_record_rows(entry_store_get(s, 0, id, &image));
	}
	return n;
}

static void check_pipeline(const char *text)
{
	enum { THREADS = 4 };
	struct entry_store *s = opened(SIZE);
	struct pipeline *p = parsed(text, s);
	pthread_t threads[THREADS];

	run_plain(text);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, run_keeping, p));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(count_rows(s) > SAMPLES * 4);
	pipeline_close(p);
	entry_store_close(s);
}

static void rows_and_errors_are_those_without_a_store(void)
{
	int failed = 0;

	make_values();
	check_pipeline("random_resized_crop(64) | flip");
	for (unsigned i = 0; i < EPOCHS * SAMPLES; i++)
		failed += results[i / SAMPLES][i % SAMPLES] != 0;
	CHECK(failed > 2 && failed < EPOCHS * SAMPLES / 4);
	check_pipeline("decode(exact) | random_resized_crop(64)");
	check_pipeline("decode(draft) | random_resized_crop(64, scale=\"1,1\")"
		       " | flip");
	for (int i = 0; i < SAMPLES; i++)
		free((void *)(uintptr_t)values[i].bytes);
}

int main(void)
{
	CHECK(!baseline_open(&baseline));
	a_sample_has_one_record();
	images_with_entries_are_hits();
	other_images_have_no_record();
	a_full_store_adds_no_records();
	records_are_within_the_limit_of_the_caller();
	rows_and_errors_are_those_without_a_store();
	baseline_close(baseline);
	return 0;
}
