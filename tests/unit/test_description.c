/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a dataset in a directory, valid and invalid. */
#include "loader/run/feed/description.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

#define PRINT "0123456789abcdef0123456789abcdef"
#define DATASET(samples, fields)                                               \
	"{\"version\": 1, \"samples\": " samples ", \"data_bytes\": 5, "       \
	"\"fingerprint\": \"" PRINT "\", \"fields\": [" fields "]}"
#define ARRAY(dtype, shape)                                                    \
	"{\"name\": \"a\", \"stem\": \"array\", \"type\": \"ndarray\", "       \
	"\"dtype\": \"" dtype "\", \"shape\": " shape "}"
#define INT(name, stem)                                                        \
	"{\"name\": \"" name "\", \"stem\": \"" stem "\", "                    \
	"\"type\": \"int\", \"dtype\": \"<i8\"}"
#define X8 "xxxxxxxx"
#define X63 X8 X8 X8 X8 X8 X8 X8 "xxxxxxx"

static const char *const bad[] = {
	"",
	"[]",
	"nonsense",
	DATASET("-1", ""),
	DATASET("68719476737", ""),
	DATASET("1.5", ""),
	DATASET("4", "3"),
	DATASET("4", "{}"),
	DATASET("4", INT("a", "")),
	DATASET("4", INT("a", "../../../pwned")),
	DATASET("4", INT("a", "/etc/passwd")),
	DATASET("4", INT("a", ".hidden")),
	DATASET("4", INT("a", "a b")),
	DATASET("4", INT("a", "a\\nb")),
	DATASET("4", INT("a", "\\u00e4")),
	DATASET("4", INT("a", "a\\u0000b")),
	DATASET("4", INT("a", X63 "x")),
	DATASET("4", INT("0123456789abcdefg", "a")),
	DATASET("4", INT("\\u00e4", "a")),
	DATASET("4", INT("a", "a") "," INT("b", "a")),
	DATASET("4", ARRAY("<f4", "[4611686018427387904]")),
	DATASET("4", ARRAY("<f4", "[4294967296, 4294967296]")),
	DATASET("4", ARRAY("<f4", "[1073741824]")),
	DATASET("4", ARRAY("<f4", "[0, 9223372036854775807]")),
	DATASET("4", ARRAY("<f4", "[-1]")),
	DATASET("4", ARRAY("<f4", "[\"3\"]")),
	DATASET("4", ARRAY("<f4", "[2.0]")),
	DATASET("4", ARRAY("<f4", "3")),
	DATASET("4", ARRAY("", "[3]")),
	DATASET("4", ARRAY("<q9", "[3]")),
	DATASET("4", ARRAY("<f4<f4<f4<f4<f4<f4", "[3]")),
	/* 33 lengths */
	DATASET("4", ARRAY("<f4", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
				  "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]")),
	DATASET("4", "{\"name\": \"a\", \"stem\": \"a\", \"type\": \"no\"}"),
	DATASET("4", "{\"name\": \"a\", \"stem\": \"a\", \"type\": \"int\"}"),
	DATASET("4", "{\"name\": \"a\", \"stem\": \"a\", \"type\": \"int\", "
		     "\"dtype\": \"<i4\"}"),
	DATASET("4", "{\"name\": \"a\", \"stem\": \"a\", \"type\": \"int\", "
		     "\"dtype\": \"<i8\", \"shape\": [3]}"),
	DATASET("4", "{\"name\": \"a\", \"stem\": \"a\", \"type\": \"bytes\", "
		     "\"dtype\": \"<i8\"}"),
	DATASET("4", "{\"name\": \"a\", \"stem\": \"a\", "
		     "\"type\": \"ndarray\", \"dtype\": \"<i8\"}"),
	"{\"version\": 2, \"samples\": 4, \"data_bytes\": 5, \"fingerprint\": "
	"\"" PRINT "\", \"fields\": []}",
	"{\"version\": 1, \"samples\": 4, \"data_bytes\": -5, "
	"\"fingerprint\": \"" PRINT "\", \"fields\": []}",
	"{\"version\": 1, \"samples\": 4, \"data_bytes\": 5, \"fingerprint\": "
	"\"" PRINT "0\", \"fields\": []}",
	"{\"version\": 1, \"samples\": 4, \"data_bytes\": 5, \"fingerprint\": "
	"\"../456789abcdef0123456789abcdef01\", \"fields\": []}",
	"{\"version\": 1, \"samples\": 4, \"data_bytes\": 5, \"fingerprint\": "
	"\"" PRINT "\", \"fields\": {}}",
};

static int parse(struct feed *feed, const char *text, char *why)
{
	*feed = (struct feed){ 0 };
	*why = '\0';
	return description_parse(feed, text, strlen(text), why);
}

static void forget(struct feed *feed)
{
	free(feed->fields);
	free(feed->names);
}

static void impossible_fields_are_refused(void)
{
	char why[DESCRIPTION_WHY_SIZE];
	struct feed feed;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (parse(&feed, bad[i], why) != -BETON_ECORRUPT || !*why) {
			fprintf(stderr, "accepted: %s\n", bad[i]);
			exit(1);
		}
		forget(&feed);
	}
}

static const char *const good[] = {
	DATASET("0", ""),
	DATASET("68719476736", ""),
	DATASET("4", INT("", "%")),
	DATASET("4", INT("a", X63)),
	DATASET("4", INT("0123456789abcdef", "-x-Y.z_~2")),
	DATASET("4", ARRAY("<U3", "[2, 3]")),
	DATASET("4", ARRAY("|u1", "[4294967295]")),
	DATASET("4", ARRAY("<f8", "[0, 536870911]")),
	DATASET("4", ARRAY("<M8[ns]", "[]")),
};

static void possible_fields_are_accepted(void)
{
	char why[DESCRIPTION_WHY_SIZE];
	struct feed feed;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (parse(&feed, good[i], why)) {
			fprintf(stderr, "%s: %s\n", why, good[i]);
			exit(1);
		}
		forget(&feed);
	}
	CHECK(!parse(&feed,
		     DATASET("7", INT("a\\n/",
				      "a%0A%2F") "," ARRAY("<f2", "[2, 3, 0]")),
		     why));
	CHECK(feed.num_fields == 2 && feed.facts.samples == 7);
	CHECK(!strcmp(feed.fingerprint, PRINT));
	CHECK(!strcmp(feed.fields[0].name, "a\n/"));
	CHECK(!strcmp(feed.fields[0].stem, "a%0A%2F"));
	CHECK(feed.fields[0].column == COLUMN_SCALAR && feed.fields[0].usable);
	CHECK(!strcmp(feed.fields[0].dtype, "<i8") && !feed.fields[0].ndim);
	CHECK(feed.fields[1].ndim == 3 && feed.fields[1].shape[1] == 3);
	CHECK(!strcmp(feed.fields[1].dtype, "<f2"));
	forget(&feed);
}

static void another_dataset_is_distinguished_from_the_own_one(void)
{
	static const char own[] = DATASET("4", INT("a", "a"));
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ own, 0 },
		{ DATASET("5", INT("a", "a")), -ESTALE },
		{ DATASET("4", ""), -ESTALE },
		{ "nonsense", -BETON_ECORRUPT },
	};
	char why[DESCRIPTION_WHY_SIZE], print[sizeof(PRINT)];
	char other[sizeof(own)];
	struct feed feed;

	CHECK(!parse(&feed, own, why));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK(description_compare(&feed, cases[i].text,
					  strlen(cases[i].text), print,
					  why) == cases[i].result);
	strcpy(other, own);
	memset(strstr(other, PRINT), 'f', 1);
	CHECK(description_compare(&feed, other, strlen(other), print, why) ==
	      -ESTALE);
	CHECK(*print == 'f' && !strcmp(print + 1, feed.fingerprint + 1));
	forget(&feed);
}

int main(void)
{
	another_dataset_is_distinguished_from_the_own_one();
	impossible_fields_are_refused();
	possible_fields_are_accepted();
	return 0;
}
