/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/graph/synonym.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"

#define PYTHON                                                                 \
	"in Python, Loader(transforms=[f]) calls f, from torchvision or your " \
	"own, on each batch"
#define NOTHING "values and images become tensors without it; leave it out"
#define TYPES "the types are operations, for example float, half and uint8"

/* Names of operations in torchvision, FFCV, albumentations, kornia, timm and
   TensorFlow. */
static const struct synonym synonyms[] = {
	{ "randomhorizontalflip", "flip", NULL },
	{ "horizontalflip", "flip", NULL },
	{ "randomflip", "flip", NULL },
	{ "hflip", "flip", NULL },
	{ "fliplr", "flip", NULL },
	{ "flipleftright", "flip", NULL },
	{ "randomflipleftright", "flip", NULL },
	{ "randomhflip", "flip", NULL },
	{ "randomverticalflip", "vertical_flip", NULL },
	{ "vflip", "vertical_flip", NULL },
	{ "flipud", "vertical_flip", NULL },
	{ "flipupdown", "vertical_flip", NULL },
	{ "randomflipupdown", "vertical_flip", NULL },
	{ "randomvflip", "vertical_flip", NULL },
	{ "wordpiece", "tokenize", NULL },
	{ "berttokenizer", "tokenize", NULL },
	{ "vol", "gain", NULL },
	{ "volume", "gain", NULL },
	{ "crop", "center_crop", NULL },
	{ "randomcrop", "random_crop", NULL },
	{ "centralcrop", "center_crop", NULL },
	{ "centercroprgbimagedecoder", "center_crop", NULL },
	{ "centercroporpad", "center_crop", NULL },
	{ "randomresizedcroprgbimagedecoder", "random_resized_crop", NULL },
	{ "randomsizedcrop", "random_resized_crop", NULL },
	{ "rrc", "random_resized_crop", NULL },
	{ "randomresizedcropandinterpolation", "random_resized_crop", NULL },
	{ "resizedcrop", "random_resized_crop", NULL },
	{ "rescaleimage", "resize", NULL },
	{ "smallestmaxsize", "resize", NULL },
	{ "resizekeepratio", "resize", NULL },
	{ "thumbnail", "resize", NULL },
	{ "simplergbimagedecoder", "decode", NULL },
	{ "rgbimagedecoder", "decode", NULL },
	{ "imdecode", "decode", NULL },
	{ "decodejpeg", "decode", NULL },
	{ "decodeimage", "decode", NULL },
	{ "imread", "decode", NULL },
	{ "piltotensor", "chw", NULL },
	{ "totorchimage", "chw", NULL },
	{ "permute", "chw", NULL },
	{ "transpose", "chw", NULL },
	{ "channelsfirst", "chw", NULL },
	{ "totensorv2", "chw", NULL },
	{ "maybetotensor", "chw", NULL },
	{ "channelslast", "hwc", NULL },
	{ "normalizeimage", "normalize", NULL },
	{ "standardize", "normalize", NULL },
	{ "perimagestandardization", "normalize", NULL },
	{ "standardscaler", "normalize", NULL },
	{ "todevice", "cuda", NULL },
	{ "gpu", "cuda", NULL },
	{ "float16", "half", NULL },
	{ "fp16", "half", NULL },
	{ "bf16", "bfloat16", NULL },
	{ "float32", "float", NULL },
	{ "fp32", "float", NULL },
	{ "convertimagedtype", "normalize(0, 1)", NULL },
	{ "tofloat", "float", NULL },
	{ "float64", "double", NULL },
	{ "fp64", "double", NULL },
	{ "long", "int64", NULL },
	{ "randomcolorjitter", "color_jitter", NULL },
	{ "colorjiggle", "color_jitter", NULL },
	{ "randombrightnesscontrast", "color_jitter", NULL },
	{ "huesaturationvalue", "color_jitter", NULL },
	{ "randomhue", "color_jitter", NULL },
	{ "hue", "color_jitter", NULL },
	{ "adjusthue", "color_jitter", NULL },
	{ "jitter", "color_jitter", NULL },
	{ "randomphotometricdistort", "color_jitter", NULL },
	{ "randombrightness", "brightness", NULL },
	{ "adjustbrightness", "brightness", NULL },
	{ "randomcontrast", "contrast", NULL },
	{ "adjustcontrast", "contrast", NULL },
	{ "randomsaturation", "saturation", NULL },
	{ "adjustsaturation", "saturation", NULL },
	{ "randomgrayscale", "grayscale", NULL },
	{ "togray", "grayscale", NULL },
	{ "rgbtograyscale", "grayscale", NULL },
	{ "gray", "grayscale", NULL },
	{ "grey", "grayscale", NULL },
	{ "greyscale", "grayscale", NULL },
	{ "randominvert", "invert", NULL },
	{ "invertimg", "invert", NULL },
	{ "randomsolarize", "solarize", NULL },
	{ "randomposterize", "posterize", NULL },
	{ "randomcutout", "cutout", NULL },
	{ "randomerasing", "random_erasing", NULL },
	{ "erasing", "random_erasing", NULL },
	{ "erase", "random_erasing", NULL },
	{ "coarsedropout", "random_erasing", NULL },
	{ "imagemixup", "mixup", NULL },
	{ "randommixup", "mixup", NULL },
	{ "randommixupv2", "mixup", NULL },
	{ "fastcollatemixup", "mixup", NULL },
	{ "labelmixup", "one_hot(CLASSES) | mixup", NULL },
	{ "mixuptoonehot", "one_hot(CLASSES) | mixup", NULL },
	{ "onehot", "one_hot", NULL },
	{ "padding", "pad", NULL },
	{ "pad2d", "pad", NULL },
	{ "copymakeborder", "pad", NULL },
	{ "translate", "random_translate", NULL },
	{ "randomshift", "random_translate", NULL },
	{ "rescale", "normalize(0, 1)", NULL },
	{ "rescaling", "normalize(0, 1)", NULL },
	{ "div255", "normalize(0, 1)", NULL },
	{ "scale", "normalize(0, 1)", NULL },
	{ "toscaledtensor", "normalize(0, 1)", NULL },
	{ "none", "drop", NULL },
	{ "ignore", "drop", NULL },
	{ "skip", "drop", NULL },
	{ "remove", "drop", NULL },
	{ "delete", "drop", NULL },
	{ "randomcroporpad", "random_crop(SIZE, pad_if_needed=true)", NULL },
	{ "totensor", NULL,
	  "`normalize(0, 1) | float | chw' is ToTensor of torchvision; FFCV's needs "
	  "no operation" },
	{ "toimage", NULL, NOTHING },
	{ "topuretensor", NULL, NOTHING },
	{ "topilimage", NULL, NOTHING },
	{ "tonumpy", NULL, NOTHING },
	{ "identity", NULL, NOTHING },
	{ "rgb", NULL, NOTHING },
	{ "torgb", NULL, NOTHING },
	{ "intdecoder", NULL, NOTHING },
	{ "floatdecoder", NULL, NOTHING },
	{ "ndarraydecoder", NULL, NOTHING },
	{ "bytesdecoder", NULL, NOTHING },
	{ "jsondecoder", NULL, NOTHING },
	{ "todtype", NULL, TYPES },
	{ "convert", NULL, TYPES },
	{ "to", NULL, TYPES },
	{ "astype", NULL, TYPES },
	{ "cast", NULL, TYPES },
	{ "type", NULL, TYPES },
	{ "dtype", NULL, TYPES },
	{ "view", NULL, TYPES },
	{ "int", NULL, TYPES },
	{ "int16", NULL, TYPES },
	{ "int8", NULL, TYPES },
	{ "bool", NULL, TYPES },
	{ "uint16", NULL, TYPES },
	{ "uint32", NULL, TYPES },
	{ "uint64", NULL, TYPES },
	{ "cpu", NULL, "outputs are in the CPU's memory without an operation" },
	{ "tocpu", NULL,
	  "outputs are in the CPU's memory without an operation" },
	{ "squeeze", NULL,
	  "numbers come without an axis of size 1; leave it out" },
	{ "compose", NULL, "operations are joined by `|'" },
	{ "sequential", NULL, "operations are joined by `|'" },
	{ "tojson", NULL,
	  "bytes and JSON come as they are: in Python, batch.NAME[i] has the bytes, and batch.NAME.json() the values" },
	{ "parse", NULL,
	  "bytes and JSON come as they are: in Python, batch.NAME[i] has the bytes, and batch.NAME.json() the values" },
	{ "text", NULL,
	  "bytes and JSON come as they are: in Python, batch.NAME[i] has the bytes, and batch.NAME.json() the values" },
	{ "str", NULL,
	  "bytes and JSON come as they are: in Python, batch.NAME[i] has the bytes, and batch.NAME.json() the values" },
	{ "string", NULL,
	  "bytes and JSON come as they are: in Python, batch.NAME[i] has the bytes, and batch.NAME.json() the values" },
	{ "shuffle", NULL, "it is an option of the loader, not an operation" },
	{ "order", NULL, "it is an option of the loader, not an operation" },
	{ "batch", NULL, "it is an option of the loader, not an operation" },
	{ "prefetch", NULL, "it is an option of the loader, not an operation" },
	{ "repeat", NULL, "it is an option of the loader, not an operation" },
	{ "subset", NULL, "it is an option of the loader, not an operation" },
	{ "seed", NULL, "it is an option of the loader, not an operation" },
	{ "rotation", "rotate", NULL },
	{ "randomrotation", "rotate", NULL },
	{ "randomrotate90", NULL, PYTHON },
	{ "rot90", NULL, PYTHON },
	{ "saferotate", "rotate", NULL },
	{ "randomaffine", "affine", NULL },
	{ "shiftscalerotate", "affine", NULL },
	{ "randomperspective", "perspective", NULL },
	{ "elastictransform", "elastic", NULL },
	{ "griddistortion", NULL, PYTHON },
	{ "opticaldistortion", NULL, PYTHON },
	{ "padifneeded", "pad", NULL },
	{ "randompad", "pad", NULL },
	{ "resizewithpad", NULL, PYTHON },
	{ "resizewithcroporpad", NULL, PYTHON },
	{ "letterbox", NULL, PYTHON },
	{ "longestmaxsize", "resize(SIZE, side=longer)", NULL },
	{ "randomscale", NULL, PYTHON },
	{ "randomresize", NULL, PYTHON },
	{ "scalejitter", NULL, PYTHON },
	{ "randomshortestsize", NULL, PYTHON },
	{ "randomzoomout", NULL, PYTHON },
	{ "randomioucrop", NULL, PYTHON },
	{ "dinocrop", "multi_crop", NULL },
	{ "cropnonemptymaskifexists", NULL, PYTHON },
	{ "trimborder", NULL, PYTHON },
	{ "blur", "gaussian_blur", NULL },
	{ "gaussianblur", "gaussian_blur", NULL },
	{ "gaussblur", "gaussian_blur", NULL },
	{ "randomgaussianblur", "gaussian_blur", NULL },
	{ "motionblur", NULL, PYTHON },
	{ "medianblur", NULL, PYTHON },
	{ "boxblur", NULL, PYTHON },
	{ "gaussiannoise", NULL, PYTHON },
	{ "gaussnoise", NULL, PYTHON },
	{ "isonoise", NULL, PYTHON },
	{ "randomgaussiannoise", NULL, PYTHON },
	{ "noise", NULL, PYTHON },
	{ "sharpen", "sharpness", NULL },
	{ "adjustsharpness", "sharpness", NULL },
	{ "randomadjustsharpness", "sharpness", NULL },
	{ "randomsharpness", "sharpness", NULL },
	{ "randomautocontrast", "autocontrast", NULL },
	{ "randomequalize", "equalize", NULL },
	{ "clahe", NULL, PYTHON },
	{ "gamma", NULL, PYTHON },
	{ "randomgamma", NULL, PYTHON },
	{ "adjustgamma", NULL, PYTHON },
	{ "rgbshift", NULL, PYTHON },
	{ "channelshuffle", NULL, PYTHON },
	{ "channeldropout", NULL, PYTHON },
	{ "randomchannelpermutation", NULL, PYTHON },
	{ "jpeg", NULL, PYTHON },
	{ "imagecompression", NULL, PYTHON },
	{ "randomjpegquality", NULL, PYTHON },
	{ "downscale", NULL, PYTHON },
	{ "griddropout", NULL, PYTHON },
	{ "gridmask", NULL, PYTHON },
	{ "hideandseek", NULL, PYTHON },
	{ "trivialaugmentwide", "trivial_augment", NULL },
	{ "mosaic", NULL, PYTHON },
	{ "randomcutmix", "cutmix", NULL },
	{ "randomcutmixv2", "cutmix", NULL },
	{ "copypaste", NULL, PYTHON },
	{ "sometimes", "random_apply", NULL },
	{ "oneof", "random_choice", NULL },
	{ "someof", "random_choice", NULL },
	{ "lambda", NULL, PYTHON },
	{ "map", NULL, PYTHON },
	{ "modulewrapper", NULL, PYTHON },
	{ "lineartransformation", NULL, PYTHON },
	{ "reshape", NULL, PYTHON },
	{ "flatten", NULL, PYTHON },
	{ "unsqueeze", NULL, PYTHON },
	{ "expanddims", NULL, PYTHON },
	{ "stack", NULL, PYTHON },
	{ "sanitizeboundingboxes", NULL, PYTHON },
	{ "clampboundingboxes", NULL, PYTHON },
	{ "uniformtemporalsubsample", NULL, PYTHON },
	{ "specaugment", NULL, PYTHON },
	{ "melspectrogram", NULL, PYTHON },
};

/* Values of arguments, also with the prefixes InterpolationMode. and INTER_. */
static const struct synonym values[] = {
	{ "area", "area", NULL },
	{ "box", "area", NULL },
	{ "bilinear", "bilinear", NULL },
	{ "linear", "bilinear", NULL },
	{ "linearexact", "bilinear", NULL },
	{ "triangle", "bilinear", NULL },
	{ "nearest", "nearest", NULL },
	{ "nearestexact", "nearest", NULL },
	{ "nearest-exact", "nearest", NULL },
	{ "bicubic", "bicubic", NULL },
	{ "cubic", "bicubic", NULL },
	{ "lanczos", "lanczos", NULL },
	{ "lanczos3", "lanczos", NULL },
	{ "lanczos4", "lanczos", NULL },
	{ "antialias", "lanczos", NULL },
	{ "short", "shorter", NULL },
	{ "shortest", "shorter", NULL },
	{ "smallest", "shorter", NULL },
	{ "long", "longer", NULL },
	{ "longest", "longer", NULL },
	{ "largest", "longer", NULL },
};

/* Classes of torchvision with the meaning and the argument order of our
 * operations. */
static const struct alias aliases[] = {
	{ "RandomHorizontalFlip", "flip", NULL, NULL },
	{ "RandomVerticalFlip", "vertical_flip", NULL, NULL },
	{ "RandomGrayscale", "grayscale", "p", "0.1" },
	{ "RandomInvert", "invert", "p", "0.5" },
	{ "RandomSolarize", "solarize", "p", "0.5" },
	{ "RandomPosterize", "posterize", "p", "0.5" },
	{ "RandomAutocontrast", "autocontrast", "p", "0.5" },
	{ "RandomEqualize", "equalize", "p", "0.5" },
	{ "RandomAdjustSharpness", "sharpness", "p", "0.5" },
	{ "RandomCrop", "random_crop", NULL, NULL },
	{ "RandomErasing", "random_erasing", NULL, NULL },
	{ "RandomRotation", "rotate", NULL, NULL },
	{ "RandomAffine", "affine", NULL, NULL },
	{ "RandomPerspective", "perspective", "p", "0.5" },
	{ "GaussianBlur", "gaussian_blur", NULL, NULL },
	{ "ElasticTransform", "elastic", NULL, NULL },
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

const struct synonym *synonym_at(size_t i)
{
	return i < ARRAY_LEN(synonyms) ? &synonyms[i] : NULL;
}

static const struct synonym *find_row(const struct synonym *rows, size_t n,
				      const char *word)
{
	for (size_t i = 0; i < n; i++) {
		if (is_same(word, rows[i].theirs))
			return &rows[i];
	}
	return NULL;
}

/* Parts of identifiers. Both spellings have the same first letter. */
static const struct spelling {
	const char *british;
	const char *american;
} spellings[] = {
	{ "colour", "color" },
	{ "centre", "center" },
	{ "grey", "gray" },
	{ "ise", "ize" },
};

static const struct spelling *spelling_at(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
		const char *british = spellings[i].british;

		if (tolower((unsigned char)*word) == *british &&
		    !strncmp(word + 1, british + 1, strlen(british + 1)))
			return &spellings[i];
	}
	return NULL;
}

const char *synonym_american(const char *word, char *out)
{
	size_t n = 0;
	bool changed = false;

	if (strlen(word) >= SYNONYM_AMERICAN_SIZE)
		return NULL;
	while (*word) {
		const struct spelling *s = spelling_at(word);

		out[n++] = *word++;
		if (!s)
			continue;
		/* The American spelling is never longer, so it fits. */
		memcpy(out + n, s->american + 1, strlen(s->american + 1));
		n += strlen(s->american + 1);
		word += strlen(s->british + 1);
		changed = true;
	}
	out[n] = '\0';
	return changed ? out : NULL;
}

const struct synonym *synonym_of(const char *word)
{
	const struct synonym *row =
		find_row(synonyms, ARRAY_LEN(synonyms), word);
	char american[SYNONYM_AMERICAN_SIZE];

	if (!row && synonym_american(word, american))
		row = find_row(synonyms, ARRAY_LEN(synonyms), american);
	return row;
}

const struct synonym *synonym_of_value(const char *word)
{
	const char *dot = strrchr(word, '.');

	word = dot ? dot + 1 : word;
	if (!strncmp(word, "INTER_", 6))
		word += 6;
	return find_row(values, ARRAY_LEN(values), word);
}

/* Whether an identifier is the name of a class in lower case, with `_' between
   its parts. */
static bool is_snake(const char *word, const char *theirs)
{
	for (const char *c = theirs; *c; c++) {
		if (c > theirs && isupper((unsigned char)*c) && *word++ != '_')
			return false;
		if (*word++ != tolower((unsigned char)*c))
			return false;
	}
	return !*word;
}

static const struct alias *find_alias(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
		const char *theirs = aliases[i].theirs;

		if (!strcmp(word, theirs) || is_snake(word, theirs))
			return &aliases[i];
	}
	return NULL;
}

const struct alias *alias_of(const char *word)
{
	const struct alias *alias = find_alias(word);
	char american[SYNONYM_AMERICAN_SIZE];

	if (!alias && synonym_american(word, american))
		alias = find_alias(american);
	return alias;
}

const struct alias *alias_at(size_t i)
{
	return i < ARRAY_LEN(aliases) ? &aliases[i] : NULL;
}

const char *synonym_text(const struct synonym *s, char *out, size_t size)
{
	*out = '\0';
	if (s && s->ours)
		snprintf(out, size, "; did you mean `%s'?", s->ours);
	else if (s)
		snprintf(out, size, "; %s", s->clause);
	return out;
}
