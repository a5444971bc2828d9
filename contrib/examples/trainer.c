/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer without a model: adds up what a first layer would read.
   cc -o trainer trainer.c $(pkg-config --cflags --libs beton)
   ./trainer train.beton 2          (or a directory where it is mounted) */
#include <beton/loader.h>
#include <stdio.h>
#include <stdlib.h>

static double train(const struct beton_batch *batch)
{
	const float *pixels = batch->outputs[0].data;
	double sum = 0;

	for (uint64_t i = 0; i < batch->outputs[0].size / sizeof(float); i++)
		sum += pixels[i];
	return sum;
}

int main(int argc, char **argv)
{
	char error[512] = "usage: trainer FILE|MOUNT [EPOCHS]";
	struct beton_loader_options options = {
		.size = sizeof(options),
		.spec = "order=random,batch=64,drop_last=0",
		.pipeline = "random_resized_crop(224) | flip | "
			    "normalize(imagenet) | float | chw",
		.epochs = argc > 2 ? (uint64_t)atoi(argv[2]) : 1,
		.error = error,
		.error_size = sizeof(error),
	};
	const struct beton_batch *batch;
	struct beton_loader *loader;
	int r = 0;

	if (argc < 2 || beton_loader_open(argv[1], &options, &loader)) {
		fprintf(stderr, "trainer: %s\n", error);
		return 1;
	}
	for (uint64_t epoch = 0; epoch < options.epochs && !r; epoch++) {
		double sum = 0;

		while (!(r = beton_loader_next(loader, &batch))) {
			sum += train(batch);
			beton_loader_release(loader, batch);
		}
		r = r == -ENODATA ? 0 : r; /* the end of an epoch */
		if (!r)
			printf("epoch %llu: %g\n", (unsigned long long)epoch,
			       sum);
	}
	if (r)
		fprintf(stderr, "trainer: %s\n", beton_loader_error(loader));
	beton_loader_close(loader);
	return r != 0;
}
