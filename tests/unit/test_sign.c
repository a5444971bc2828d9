/* SPDX-License-Identifier: Apache-2.0 */
/* Published vectors: FIPS 180-4, RFC 4231, AWS's test suite of Signature
   Version 4, and the examples in the documentation of S3. */
#include "fs/source/net/sign.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

static void hashes(void)
{
	static const struct {
		const char *text;
		const char *hex;
	} table[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b"
		      "7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410f"
			 "f61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db"
		  "06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijk"
		  "lmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afe"
		  "e9d1" },
	};
	char hex[SHA256_HEX_SIZE], a[1000];
	uint8_t sum[SHA256_SIZE];
	struct sha256 hash;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		sha256_hex(table[i].text, strlen(table[i].text), hex);
		CHECK(!strcmp(hex, table[i].hex));
	}
	/* A million times "a", in pieces that cross blocks. */
	memset(a, 'a', sizeof(a));
	sha256_init(&hash);
	for (int i = 0; i < 1000; i++) {
		sha256_add(&hash, a, 333);
		sha256_add(&hash, a, 667);
	}
	sha256_end(&hash, sum);
	sha256_text(sum, hex);
	CHECK(!strcmp(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e"
			   "046d39ccc7112cd0"));
}

/* All paddings: pieces of any size give the hash of the whole. */
static void hashes_of_pieces(void)
{
	uint8_t sum[SHA256_SIZE];
	char data[200], whole[SHA256_HEX_SIZE], pieces[SHA256_HEX_SIZE];
	struct sha256 hash;

	memset(data, 0x5a, sizeof(data));
	for (size_t n = 0; n < sizeof(data); n++) {
		sha256_hex(data, n, whole);
		sha256_init(&hash);
		for (size_t i = 0; i < n; i++)
			sha256_add(&hash, data + i, 1);
		sha256_end(&hash, sum);
		sha256_text(sum, pieces);
		CHECK(!strcmp(whole, pieces));
	}
}

static void check_hmac(const char *key, size_t key_size, const char *data,
		       size_t size, const char *expected)
{
	uint8_t sum[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];

	hmac_sha256(key, key_size, data, size, sum);
	sha256_text(sum, hex);
	CHECK(!strcmp(hex, expected));
}

static void keyed_hashes(void)
{
	static const char long_data[] =
		"This is a test using a larger than block-size key and a "
		"larger than block-size data. The key needs to be hashed "
		"before being used by the HMAC algorithm.";
	char key[131], data[50], counted[25];

	memset(key, 0x0b, 20);
	check_hmac(key, 20, "Hi There", 8,
		   "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e3"
		   "2cff7");
	check_hmac("Jefe", 4, "what do ya want for nothing?", 28,
		   "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964e"
		   "c3843");
	memset(key, 0xaa, sizeof(key));
	memset(data, 0xdd, sizeof(data));
	check_hmac(key, 20, data, sizeof(data),
		   "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced"
		   "565fe");
	for (size_t i = 0; i < sizeof(counted); i++)
		counted[i] = (char)(i + 1);
	memset(data, 0xcd, sizeof(data));
	check_hmac(counted, sizeof(counted), data, sizeof(data),
		   "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff4672"
		   "9665b");
	check_hmac(key, sizeof(key),
		   "Test Using Larger Than Block-Size Key - Hash Key First", 54,
		   "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee"
		   "37f54");
	check_hmac(key, sizeof(key), long_data, sizeof(long_data) - 1,
		   "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3"
		   "a35e2");
}

struct vector {
	const char *method;
	const char *path;
	const char *query;
	const char *lines[4];
	const char *payload;
	const char *token;
	const char *names;
	const char *signature;
};

static void check_vector(const struct vector *v, const struct sign_keys *keys,
			 struct sign_request request)
{
	char expected[400];
	struct sign_lines lines;

	request.method = v->method;
	request.path = v->path;
	request.query = v->query;
	request.lines = v->lines;
	while (request.num_lines < 4 && v->lines[request.num_lines])
		request.num_lines++;
	request.payload = v->payload;
	CHECK(!sign_request(keys, &request, &lines));
	CHECK(snprintf(expected, sizeof(expected),
		       "SignedHeaders=%s, Signature=%s", v->names,
		       v->signature) < (int)sizeof(expected));
	if (!strstr(lines.at[lines.num - 1], expected))
		fprintf(stderr, "%s\nexpected %s\n", lines.at[lines.num - 1],
			expected);
	CHECK(strstr(lines.at[lines.num - 1], expected));
	sign_lines_fini(&lines);
}

/* AWS's suite: host example.amazonaws.com, 2015-08-30T12:36:00Z. */
static void the_suite_of_aws(void)
{
	static const char sts_token[] =
		"AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZ"
		"TwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkP"
		"pKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7W"
		"Z0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7Z"
		"D0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx"
		"3iSIlTJabIQwj2ICCR/oLxBA==";
	static const char form[] =
		"9095672bbd1f56dfc5b65f3e153adc8731a4a6541923"
		"29106275f4c7b24d0b6e";
	static const struct vector table[] = {
		{ .method = "GET",
		  .path = "/",
		  .names = "host;x-amz-date",
		  .signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956"
			       "d9b8aae1d763fbf31" },
		{ .method = "POST",
		  .path = "/",
		  .names = "host;x-amz-date",
		  .signature = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37"
			       "dddb68e92efbe5d6b" },
		{ .method = "GET",
		  .path = "/",
		  .token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa3155"
			   "3b73ebf194267",
		  .names = "host;x-amz-date;x-amz-security-token",
		  .signature = "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a9"
			       "7044c66dd9f74e7f8" },
		{ .method = "POST",
		  .path = "/",
		  .token = sts_token,
		  .names = "host;x-amz-date;x-amz-security-token",
		  .signature = "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba04183"
			       "6c64533a82be05ead" },
		{ .method = "GET",
		  .path = "/",
		  .query = "Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
		  .names = "host;x-amz-date",
		  .signature = "371d3713e185cc334048618a97f809c9ffe339c62934c03"
			       "2af5a0e595648fcac" },
		{ .method = "GET",
		  .path = "/",
		  .query = "Param2=value2&Param1=value1",
		  .names = "host;x-amz-date",
		  .signature = "b97d918cfa904a5beff61c982a1b6f458b799221646efd9"
			       "9d3219ec94cdf2500" },
		{ .method = "GET",
		  .path = "/",
		  .query = "%E1%88%B4=bar",
		  .names = "host;x-amz-date",
		  .signature = "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d"
			       "91e12c9027818dd04" },
		{ .method = "GET",
		  .path = "/",
		  .lines = { "My-Header1: value1",
			     "My-Header2: \"a   b   c\"" },
		  .names = "host;my-header1;my-header2;x-amz-date",
		  .signature = "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b3670"
			       "55dee359757a9c736" },
		{ .method = "GET",
		  .path = "/",
		  .lines = { "My-Header1:value2", "My-Header1:value2",
			     "My-Header1:value1" },
		  .names = "host;my-header1;x-amz-date",
		  .signature = "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468"
			       "f858259531a5138ea" },
		{ .method = "GET",
		  .path = "/",
		  .lines = { "My-Header1:value4", "My-Header1:value1",
			     "My-Header1:value3", "My-Header1:value2" },
		  .names = "host;my-header1;x-amz-date",
		  .signature = "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601"
			       "a50643f830c755c01" },
		{ .method = "GET",
		  .path = "//example//",
		  .names = "host;x-amz-date",
		  .signature = "87cca117541a147f6df867677d98a7d80dff226d2bfca9e"
			       "4ffa899665623c7e5" },
		{ .method = "GET",
		  .path = "/%E1%88%B4",
		  .names = "host;x-amz-date",
		  .signature = "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255"
			       "a891fd03141be5d85" },
		{ .method = "POST",
		  .path = "/",
		  .payload = form,
		  .lines = { "Content-Type:application/x-www-form-urlencoded",
			     "Content-Length:13" },
		  .names = "content-length;content-type;host;"
			   "x-amz-content-sha256;x-amz-date",
		  .signature = "d3875051da38690788ef43de4db0d8f280229d82040bfac"
			       "253562e56c3f20e0b" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct sign_keys keys = {
			.id = "AKIDEXAMPLE",
			.secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
			.token = table[i].token,
		};

		check_vector(&table[i], &keys,
			     (struct sign_request){
				     .host = "example.amazonaws.com",
				     .region = "us-east-1",
				     .service = "service",
				     .now = 1440938160,
			     });
	}
}

/* The documentation of S3: examplebucket, 2013-05-24T00:00:00Z. */
static void the_examples_of_s3(void)
{
	static const struct vector table[] = {
		{ .method = "GET",
		  .path = "/test.txt",
		  .lines = { "Range: bytes=0-9" },
		  .names = "host;range;x-amz-content-sha256;x-amz-date",
		  .signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48"
			       "dd91039c6036bdb41" },
		{ .method = "PUT",
		  .path = "/test%24file.text",
		  .lines = { "Date: Fri, 24 May 2013 00:00:00 GMT",
			     "x-amz-storage-class: REDUCED_REDUNDANCY" },
		  .payload = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42"
			     "034a8b803f8b072",
		  .names = "date;host;x-amz-content-sha256;x-amz-date;"
			   "x-amz-storage-class",
		  .signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a"
			       "1b5971af0ece108bd" },
		{ .method = "GET",
		  .path = "/",
		  .query = "lifecycle",
		  .names = "host;x-amz-content-sha256;x-amz-date",
		  .signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91a"
			       "c7a200a0136783543" },
		{ .method = "GET",
		  .path = "/",
		  .query = "prefix=J&max-keys=2",
		  .names = "host;x-amz-content-sha256;x-amz-date",
		  .signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db66"
			       "70ed5711ef69dc6f7" },
	};
	static const struct sign_keys keys = {
		.id = "AKIAIOSFODNN7EXAMPLE",
		.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		check_vector(&table[i], &keys,
			     (struct sign_request){
				     .host = "examplebucket.s3.amazonaws.com",
				     .region = "us-east-1",
				     .service = "s3",
				     .now = 1369353600,
			     });
}

/* The lines are all that the request needs besides its host and its own. */
static void lines_are_complete(void)
{
	static const struct sign_keys keys = { "ID", "SECRET", "TOKEN" };
	struct sign_request request = {
		.method = "PUT",
		.host = "h",
		.path = "/k",
		.payload = SIGN_UNSIGNED,
		.region = "r",
		.service = "s3",
		.now = 1369353600,
	};
	struct sign_lines lines;

	CHECK(!sign_request(&keys, &request, &lines));
	CHECK(lines.num == 4);
	CHECK(!strcmp(lines.at[0], "x-amz-date: 20130524T000000Z"));
	CHECK(!strcmp(lines.at[1], "x-amz-content-sha256: UNSIGNED-PAYLOAD"));
	CHECK(!strcmp(lines.at[2], "x-amz-security-token: TOKEN"));
	CHECK(!strncmp(lines.at[3],
		       "Authorization: AWS4-HMAC-SHA256 Credential="
		       "ID/20130524/r/s3/aws4_request, ",
		       74));
	for (size_t i = 0; i < lines.num; i++)
		CHECK(!strstr(lines.at[i], "SECRET"));
	sign_lines_fini(&lines);
	CHECK(!lines.num);
}

static void bad_values_are_refused(void)
{
	const char *many[SIGN_HEADERS_MAX];
	struct sign_keys keys = { "ID", "SECRET", "TO\r\nKEN" };
	struct sign_request request = {
		.method = "GET",
		.host = "h",
		.path = "/k",
		.region = "r",
		.service = "s3",
		.lines = many,
	};
	struct sign_lines lines;

	CHECK(sign_request(&keys, &request, &lines) == -EINVAL);
	sign_lines_fini(&lines);
	keys.token = NULL;
	keys.id = "ID\n";
	CHECK(sign_request(&keys, &request, &lines) == -EINVAL);
	sign_lines_fini(&lines);
	keys.id = "ID";
	for (size_t i = 0; i < SIGN_HEADERS_MAX; i++)
		many[i] = "A: b";
	many[0] = "no line";
	request.num_lines = 1;
	CHECK(sign_request(&keys, &request, &lines) == -EINVAL);
	sign_lines_fini(&lines);
	many[0] = "A: b";
	request.num_lines = SIGN_HEADERS_MAX;
	CHECK(sign_request(&keys, &request, &lines) == -E2BIG);
	sign_lines_fini(&lines);
}

int main(void)
{
	hashes();
	hashes_of_pieces();
	keyed_hashes();
	the_suite_of_aws();
	the_examples_of_s3();
	lines_are_complete();
	bad_values_are_refused();
	return 0;
}
