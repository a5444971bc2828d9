/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/synonym.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>

#include "fs/util/bytes.h"

#define HERE(ours) "did you mean `" ours "'?"
#define PYTHON                                                                 \
	"there is none like it; Python's Loader(transforms=[f]) calls f on "   \
	"each batch"

#define BFLOAT16                                                               \
	"`half' is float16; of `float', Python's batch.to(torch.bfloat16) "    \
	"makes bfloat16"

struct synonym {
	const char *theirs; /* in small letters, without `_' */
	const char *clause;
};

static const struct synonym synonyms[] = {
	{ "randomhorizontalflip", HERE("flip") },
	{ "horizontalflip", HERE("flip") },
	{ "randomflip", HERE("flip") },
	{ "hflip", HERE("flip") },
	{ "fliplr", HERE("flip") },
	{ "randomverticalflip", HERE("vertical_flip") },
	{ "vflip", HERE("vertical_flip") },
	{ "flipud", HERE("vertical_flip") },
	{ "crop", HERE("center_crop") },
	{ "centercroprgbimagedecoder", HERE("center_crop") },
	{ "randomcrop", "random_resized_crop(SIZE) crops at random, and "
			"random_translate(PADDING) crops a padded image" },
	{ "randomresizedcroprgbimagedecoder", HERE("random_resized_crop") },
	{ "simplergbimagedecoder", HERE("decode") },
	{ "rgbimagedecoder", HERE("decode") },
	{ "totensor", "`float | chw' is ToTensor of torchvision; FFCV's needs "
		      "no operation" },
	{ "toimage", "images need no operation to become tensors" },
	{ "piltotensor", HERE("chw") },
	{ "totorchimage", HERE("chw") },
	{ "permute", HERE("chw") },
	{ "transpose", HERE("chw") },
	{ "channelsfirst", HERE("chw") },
	{ "channelslast", HERE("hwc") },
	{ "normalizeimage", HERE("normalize") },
	{ "todevice", HERE("cuda") },
	{ "gpu", HERE("cuda") },
	{ "bfloat16", BFLOAT16 },
	{ "bf16", BFLOAT16 },
	{ "float16", HERE("half") },
	{ "fp16", HERE("half") },
	{ "float32", HERE("float") },
	{ "fp32", HERE("float") },
	{ "float64", HERE("double") },
	{ "todtype", "the types are float, half, double, uint8, int32, int64" },
	{ "convert", "the types are float, half, double, uint8, int32, int64" },
	{ "convertimagedtype", HERE("float") },
	{ "randomcolorjitter", HERE("color_jitter") },
	{ "randombrightness", HERE("brightness") },
	{ "randomcontrast", HERE("contrast") },
	{ "randomsaturation", HERE("saturation") },
	{ "randomgrayscale", HERE("grayscale") },
	{ "randominvert", HERE("invert") },
	{ "randomsolarize", HERE("solarize") },
	{ "randomposterize", HERE("posterize") },
	{ "randomcutout", HERE("cutout") },
	{ "randomerasing", HERE("cutout") },
	{ "imagemixup", HERE("mixup") },
	{ "labelmixup", HERE("one_hot(CLASSES) | mixup") },
	{ "mixuptoonehot", HERE("one_hot(CLASSES) | mixup") },
	{ "onehot", HERE("one_hot") },
	{ "squeeze", "numbers come without an axis of size 1; leave it out" },
	{ "rotate", PYTHON },
	{ "rotation", PYTHON },
	{ "randomrotation", PYTHON },
	{ "randomaffine", PYTHON },
	{ "randomperspective", PYTHON },
	{ "pad", PYTHON },
	{ "blur", PYTHON },
	{ "gaussianblur", PYTHON },
	{ "randaugment", PYTHON },
	{ "autoaugment", PYTHON },
	{ "augmix", PYTHON },
	{ "trivialaugmentwide", PYTHON },
	{ "cutmix", PYTHON },
};

static bool is_same(const char *word, const char *theirs)
{
	for (; *word; word++) {
		if (*word == '_')
			continue;
		if (tolower((unsigned char)*word) != *theirs)
			return false;
		theirs++;
	}
	return !*theirs;
}

const char *synonym_of(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(synonyms); i++) {
		if (is_same(word, synonyms[i].theirs))
			return synonyms[i].clause;
	}
	return NULL;
}
