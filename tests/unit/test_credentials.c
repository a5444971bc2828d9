/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/credentials.h"

#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"
#include "fs/source/url/scheme.h"
#include "tests/unit/outside.h"

static struct fake fake;
static struct log heard;
static pthread_mutex_t hearing = PTHREAD_MUTEX_INITIALIZER;
static char messages[65536]; /* guarded by hearing */
static unsigned num_changes; /* atomic */

static void hear(void *arg, enum beton_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	pthread_mutex_lock(&hearing);
	CHECK(strlen(messages) + strlen(text) + 2 < sizeof(messages));
	strcat(messages, text);
	strcat(messages, "\n");
	pthread_mutex_unlock(&hearing);
}

static bool has_heard(const char *text)
{
	bool has;

	pthread_mutex_lock(&hearing);
	has = strstr(messages, text);
	pthread_mutex_unlock(&hearing);
	return has;
}

static void change(void *arg)
{
	(void)arg;
	__atomic_add_fetch(&num_changes, 1, __ATOMIC_SEQ_CST);
}

static void begin(void)
{
	fake_init(&fake);
	pthread_mutex_lock(&hearing);
	messages[0] = '\0';
	pthread_mutex_unlock(&hearing);
	__atomic_store_n(&num_changes, 0, __ATOMIC_SEQ_CST);
}

static const struct url_scheme *scheme(const char *name)
{
	char text[16];
	const char *rest;

	snprintf(text, sizeof(text), "%s://", name);
	return url_scheme_of(text, &rest);
}

static struct credentials *open_of(struct credentials_options options)
{
	struct credentials *c;

	options.name = "s3://bbb/k";
	options.changed = change;
	CHECK(!credentials_open(&options, &fake.outside, &heard, &c));
	return c;
}

static struct credentials *open_s3(void)
{
	return open_of((struct credentials_options){ .scheme = scheme("s3") });
}

static struct url_request url_of(struct credentials *c, const char *text)
{
	struct url_request request;
	char why[URL_WHY_SIZE] = "";
	struct url url;

	CHECK(!url_parse(text, &url, why));
	CHECK(!credentials_url(c, &url, &request, why));
	url_fini(&url);
	return request;
}

static int sign(struct credentials *c, struct credentials_lines *out)
{
	struct url_request url = url_of(c, "s3://bbb/k");
	const struct credentials_request request = { .method = "GET",
						     .url = &url };
	int r = credentials_sign(c, &request, out);

	url_request_fini(&url);
	return r;
}

/* Signs without waiting; whether a line has the text. */
static bool signs_with(struct credentials *c, const char *text,
		       uint64_t *version)
{
	struct credentials_lines lines;
	bool has = false;
	int r = sign(c, &lines);

	if (version)
		*version = lines.version;
	for (size_t i = 0; i < lines.num; i++)
		has = has || strstr(lines.at[i], text);
	credentials_lines_fini(&lines);
	return !r && has;
}

static void wait_for(struct credentials *c, const char *text)
{
	int64_t end = clock_ns() + 10000000000LL;

	while (!signs_with(c, text, NULL)) {
		CHECK(clock_ns() < end);
		usleep(1000);
	}
}

static int result_of(struct credentials *c)
{
	struct credentials_lines lines;
	int r = sign(c, &lines);

	credentials_lines_fini(&lines);
	return r;
}

static void slow_down(bool is_slow)
{
	pthread_mutex_lock(&fake.lock);
	fake.is_slow = is_slow;
	pthread_mutex_unlock(&fake.lock);
}

#define IMDS "http://169.254.169.254/latest/"
#define ROLES IMDS "meta-data/iam/security-credentials/"

/* A session of the instance, which expires `left` seconds from now. */
static void give(const char *id, time_t left)
{
	static char texts[8][300];
	static unsigned n;
	char time[40];
	time_t at = fake_now(&fake) + left;
	struct tm tm;

	strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
	pthread_mutex_lock(&fake.lock);
	n = (n + 1) % 8;
	snprintf(texts[n], sizeof(texts[n]),
		 "{\"Code\": \"Success\", \"AccessKeyId\": \"%s\", "
		 "\"SecretAccessKey\": \"HUSH\", \"Token\": \"TOKEN-%s\", "
		 "\"Expiration\": \"%s\"}",
		 id, id, time);
	pthread_mutex_unlock(&fake.lock);
	fake_answer(&fake, "PUT " IMDS "api/token", 200, "IMDSTOKEN");
	fake_answer(&fake, "GET " ROLES, 200, "role");
	fake_answer(&fake, "GET " ROLES "role", 200, texts[n]);
}

static void pass(time_t seconds)
{
	fake_set_now(&fake, fake_now(&fake) + seconds);
}

static void a_session_is_found_in_the_background(void)
{
	struct credentials *c;

	begin();
	give("A1", 3600);
	slow_down(true);
	c = open_s3();
	CHECK(result_of(c) == -EAGAIN);
	CHECK(credentials_wait(c, 1) == -ETIMEDOUT);
	slow_down(false);
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "Credential=A1/", NULL));
	CHECK(signs_with(c, "x-amz-security-token: TOKEN-A1", NULL));
	credentials_close(c);
	CHECK(__atomic_load_n(&num_changes, __ATOMIC_SEQ_CST) == 1);
	CHECK(!has_heard(""
			 "HUSH") &&
	      !has_heard("TOKEN"));
}

/* Readers use the old session while a renewal is slow, or fails. */
static void renewals_come_before_the_end(void)
{
	struct credentials *c;

	begin();
	give("A1", 3600);
	c = open_s3();
	CHECK(!credentials_wait(c, 10000));
	give("A2", 7200);
	pass(3600 - 301);
	CHECK(signs_with(c, "Credential=A1/", NULL));
	CHECK(fake.num_fetches == 3);
	pass(2);
	slow_down(true);
	for (int i = 0; i < 100; i++)
		CHECK(signs_with(c, "Credential=A1/", NULL));
	slow_down(false);
	wait_for(c, "Credential=A2/");
	credentials_close(c);
	CHECK(!messages[0]);
}

static void short_sessions_are_renewed_in_time(void)
{
	struct credentials *c;
	char id[8];

	begin();
	give("A0", 60);
	c = open_s3();
	CHECK(!credentials_wait(c, 10000));
	for (int i = 1; i < 60; i++) {
		snprintf(id, sizeof(id), "A%d", i);
		give(id, 100);
		pass(41);
		CHECK(!result_of(c));
		snprintf(id, sizeof(id), "=A%d/", i);
		wait_for(c, id);
		pass(-1);
		give("none", -1);
	}
	credentials_close(c);
}

static void failed_renewals_are_tried_again(void)
{
	struct credentials *c;

	begin();
	give("A1", 3600);
	c = open_s3();
	CHECK(!credentials_wait(c, 10000));
	fake_answer(&fake, "PUT " IMDS "api/token", 500, "");
	pass(3400);
	for (int i = 0; i < 50; i++) {
		CHECK(signs_with(c, "Credential=A1/", NULL));
		usleep(1000);
	}
	CHECK(has_heard("s3://bbb/k: cannot renew the credentials, which are "
			"valid for 200 more seconds: EC2 instance metadata: "
			"HTTP status 500\n"));
	/* A service that is not there is no reason to stop either. */
	fake_answer(&fake, "PUT " IMDS "api/token", -ECONNREFUSED, "");
	CHECK(signs_with(c, "Credential=A1/", NULL));
	pass(300);
	CHECK(result_of(c) == -EAGAIN);
	give("A2", 3600);
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "Credential=A2/", NULL));
	CHECK(has_heard("s3://bbb/k: the credentials are renewed\n"));
	/* One line for all attempts. */
	CHECK(!strstr(strstr(messages, "cannot renew") + 1, "cannot renew"));
	credentials_close(c);
}

static void no_session_is_final(void)
{
	struct credentials *c;

	begin();
	c = open_s3();
	CHECK(credentials_wait(c, 10000) == -EACCES);
	CHECK(result_of(c) == -EACCES);
	CHECK(has_heard("s3://bbb/k: there are no credentials: neither in "
			"variables (AWS_ACCESS_KEY_ID), nor in profile "
			"default, nor from a container or the machine; use "
			"no_sign for public objects, and see "
			"beton-remote(7)\n"));
	credentials_close(c);
}

/* A machine that is no instance, and whose router drops such packets. */
static void silence_is_no_service(void)
{
	struct credentials *c;

	begin();
	fake_answer(&fake, "PUT " IMDS, -ETIMEDOUT, "");
	fake_answer(&fake, "GET " IMDS, -ETIMEDOUT, "");
	c = open_s3();
	CHECK(credentials_wait(c, 10000) == -EACCES);
	CHECK(fake.num_fetches == 3);
	credentials_close(c);
}

/* A first session that does not come is an error; a renewal waits. */
static void a_first_session_has_few_attempts(void)
{
	struct credentials *c;

	begin();
	fake_answer(&fake, "PUT " IMDS, 500, "");
	fake.outside.pause_ms = 1;
	c = open_s3();
	CHECK(credentials_wait(c, 10000) == -EACCES);
	CHECK(fake.num_fetches == 4);
	CHECK(has_heard("no credentials yet: EC2 instance metadata: HTTP "
			"status 500"));
	credentials_close(c);
}

static void a_pause_ends_the_thread(void)
{
	struct credentials *c;

	begin();
	fake_answer(&fake, "PUT " IMDS "api/token", 500, "");
	fake.outside.pause_ms = 100000;
	c = open_s3();
	CHECK(credentials_wait(c, 10) == -ETIMEDOUT);
	credentials_pause(c);
	give("A1", 3600);
	CHECK(result_of(c) == -EAGAIN);
	CHECK(!credentials_wait(c, 10000));
	credentials_pause(c);
	CHECK(!result_of(c));
	credentials_close(c);
	credentials_close(NULL);
}

static struct refusal refusal_of(int status, const char *code)
{
	struct refusal refusal = { .status = status };

	snprintf(refusal.code, sizeof(refusal.code), "%s", code);
	return refusal;
}

static void refused_sessions_are_renewed_once(void)
{
	struct refusal expired = refusal_of(400, "ExpiredToken");
	struct refusal denied = refusal_of(403, "AccessDenied");
	struct credentials *c;
	uint64_t version, second;

	begin();
	give("A1", 3600);
	c = open_s3();
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "=A1/", &version));
	CHECK(!credentials_refused(c, version, &denied));
	give("A2", 3600);
	CHECK(credentials_refused(c, version, &expired));
	CHECK(credentials_refused(c, version, &expired));
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "=A2/", &second) && second != version);
	/* An answer that was late. */
	CHECK(credentials_refused(c, version, &expired));
	CHECK(signs_with(c, "=A2/", NULL));
	CHECK(!credentials_refused(c, second, &expired));
	credentials_close(c);
}

static void variables_cannot_be_renewed(void)
{
	struct refusal expired = refusal_of(400, "ExpiredToken");
	struct credentials *c;
	uint64_t version;

	begin();
	fake_set(&fake, fake.variables, "AWS_ACCESS_KEY_ID", "E1");
	fake_set(&fake, fake.variables, "AWS_SECRET_ACCESS_KEY", "HUSH");
	c = open_s3();
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "=E1/", &version));
	CHECK(!credentials_refused(c, version, &expired));
	pass(1000000);
	CHECK(signs_with(c, "=E1/", NULL));
	credentials_close(c);
}

/* Keys in a file that changes are taken after a refusal. */
static void files_are_read_again(void)
{
	struct refusal invalid = refusal_of(403, "InvalidAccessKeyId");
	struct credentials *c;
	uint64_t version;

	begin();
	fake_set(&fake, fake.files, "/home/me/.aws/credentials",
		 "[default]\naws_access_key_id=F1\naws_secret_access_key=X");
	c = open_s3();
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "=F1/", &version));
	fake_set(&fake, fake.files, "/home/me/.aws/credentials",
		 "[default]\naws_access_key_id=F2\naws_secret_access_key=X");
	CHECK(credentials_refused(c, version, &invalid));
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "=F2/", NULL));
	credentials_close(c);
}

/* The instance has another identity than the file. */
static void no_other_place_is_searched(void)
{
	struct refusal invalid = refusal_of(403, "InvalidAccessKeyId");
	struct credentials *c;
	uint64_t version;

	begin();
	give("A1", 3600);
	fake_set(&fake, fake.files, "/home/me/.aws/credentials",
		 "[default]\naws_access_key_id=F1\naws_secret_access_key=X");
	c = open_s3();
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "=F1/", &version));
	fake_set(&fake, fake.files, "/home/me/.aws/credentials", "");
	CHECK(credentials_refused(c, version, &invalid));
	CHECK(credentials_wait(c, 50) == -ETIMEDOUT && !fake.num_fetches);
	fake_set(&fake, fake.files, "/home/me/.aws/credentials",
		 "[default]\naws_access_key_id=F2\naws_secret_access_key=X");
	wait_for(c, "=F2/");
	credentials_close(c);
}

static void clocks_are_corrected(void)
{
	struct refusal skewed = refusal_of(403, "RequestTimeTooSkewed");
	struct credentials *c;
	uint64_t version;

	begin();
	give("A1", 3600);
	c = open_s3();
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "x-amz-date: 20231114T221320Z", &version));
	CHECK(!credentials_refused(c, version, &skewed));
	refusal_line(&skewed, "date: Tue, 14 Nov 2023 21:13:20 GMT\r\n", 38);
	CHECK(skewed.date == 1700000000 - 3600);
	CHECK(credentials_refused(c, version, &skewed));
	CHECK(signs_with(c, "x-amz-date: 20231114T211320Z", NULL));
	CHECK(!credentials_refused(c, version, &skewed));
	CHECK(has_heard("differs from the server's by -3600 seconds"));
	credentials_close(c);
}

static void buckets_move(void)
{
	struct refusal moved = refusal_of(301, "PermanentRedirect");
	struct refusal head = refusal_of(301, "");
	struct refusal bad = refusal_of(301, "PermanentRedirect");
	static const char body[] =
		"<Error><Code>AuthorizationHeaderMalformed</Code>"
		"<Region>ap-south-1</Region></Error>";
	struct refusal malformed = { .status = 400 };
	struct credentials *c;
	struct url_request url;

	begin();
	give("A1", 3600);
	c = open_s3();
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "/us-east-1/s3/", NULL));
	CHECK(!credentials_refused(c, 1, &moved));
	refusal_line(&bad, "x-amz-bucket-region: evil.com/", 30);
	CHECK(!credentials_refused(c, 1, &bad));
	refusal_line(&head, "X-Amz-Bucket-Region: eu-west-1\r\n", 32);
	CHECK(credentials_refused(c, 1, &head));
	CHECK(signs_with(c, "/eu-west-1/s3/", NULL));
	CHECK(!credentials_refused(c, 1, &head));
	url = url_of(c, "s3://bbb/k");
	CHECK(!strcmp(url.url, "https://bbb.s3.eu-west-1.amazonaws.com/k"));
	url_request_fini(&url);
	refusal_body(&malformed, body, sizeof(body) - 1);
	CHECK(credentials_refused(c, 1, &malformed));
	CHECK(signs_with(c, "/ap-south-1/s3/", NULL));
	/* Not again and again. */
	refusal_line(&head, "x-amz-bucket-region: r3", 23);
	CHECK(credentials_refused(c, 1, &head));
	refusal_line(&head, "x-amz-bucket-region: r4", 23);
	CHECK(credentials_refused(c, 1, &head));
	refusal_line(&head, "x-amz-bucket-region: r5", 23);
	CHECK(!credentials_refused(c, 1, &head));
	credentials_close(c);
}

static void header_files(void)
{
	struct refusal unauthorized = refusal_of(401, "");
	struct credentials_options options = { .scheme = scheme("https"),
					       .header = "/h" };
	struct credentials *c;
	uint64_t version;

	begin();
	c = open_of(options);
	CHECK(credentials_wait(c, 10000) == -EACCES);
	CHECK(has_heard("s3://bbb/k: header=/h: No such file or directory: "
			"expected a file with lines NAME: VALUE, or a bearer "
			"token\n"));
	credentials_close(c);
	fake_set(&fake, fake.files, "/h", "# mine\nX-A: b\n\n X-C:d \r\n");
	c = open_of(options);
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "X-A: b", &version));
	CHECK(signs_with(c, "X-C:d", NULL));
	CHECK(!signs_with(c, "Authorization", NULL));
	fake_set(&fake, fake.files, "/h", "HUSH\n");
	CHECK(credentials_refused(c, version, &unauthorized));
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "Authorization: Bearer HUSH", NULL));
	CHECK(!signs_with(c, "X-A", NULL));
	/* Without a refusal, too. */
	fake_set(&fake, fake.files, "/h", "Authorization: Basic HUSH");
	pass(61);
	wait_for(c, "Authorization: Basic HUSH");
	fake_set(&fake, fake.files, "/h", "no header\nx");
	pass(61);
	CHECK(signs_with(c, "Basic HUSH", NULL));
	credentials_pause(c);
	CHECK(has_heard("cannot read the credentials again: header=/h:1: "
			"expected NAME: VALUE\n"));
	CHECK(!has_heard("HUSH"));
	credentials_close(c);
	/* An Authorization header replaces signatures. */
	fake_set(&fake, fake.files, "/h", "Authorization: Bearer B");
	options.scheme = scheme("gs");
	c = open_of(options);
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "Authorization: Bearer B", NULL));
	credentials_close(c);
}

static void bad_header_files_are_refused(void)
{
	static char long_line[40000], long_token[40000];
	static const char *const table[][2] = {
		{ "A: b\nHost: x", "/h:2: requests have this header" },
		{ "range: bytes=0-1", "/h:1: requests have this header" },
		{ "A b: c", "/h:1: expected NAME: VALUE" },
		{ ": c", "/h:1: expected NAME: VALUE" },
		{ "A: b\x01", "/h:1: the value has a control character" },
		{ "a:1\na:2\na:3\na:4\na:5\na:6\na:7\na:8\na:9\na:10\na:11",
		  "/h:11: more than 10 headers" },
		{ "", "header=/h: the file is empty: write lines NAME: VALUE" },
		{ "# no line\n", "header=/h: the file is empty" },
		{ long_line, "/h:2: the headers are longer than 32 KiB" },
		{ long_token, "/h: the token is longer than 32 KiB" },
	};
	struct credentials *c;

	memset(long_line, 'x', sizeof(long_line) - 1);
	memcpy(long_line, "A: b\nC: ", 8);
	memset(long_token, 'x', sizeof(long_token) - 1);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		begin();
		fake_set(&fake, fake.files, "/h", table[i][0]);
		c = open_of((struct credentials_options){
			.scheme = scheme("http"), .header = "/h" });
		CHECK(credentials_wait(c, 10000) == -EACCES);
		CHECK(has_heard(table[i][1]) && !has_heard("xxx"));
		credentials_close(c);
	}
}

static void some_need_no_session(void)
{
	struct refusal unauthorized = refusal_of(401, "");
	struct credentials *c;
	struct url_request url;

	begin();
	fake_set(&fake, fake.variables, "AWS_ACCESS_KEY_ID", "E1");
	fake_set(&fake, fake.variables, "AWS_SECRET_ACCESS_KEY", "HUSH");
	fake_set(&fake, fake.variables, "AWS_REGION", "eu-west-1");
	fake_set(&fake, fake.variables, "AZURE_STORAGE_ACCOUNT", "acc");
	fake_set(&fake, fake.variables, "AZURE_STORAGE_SAS_TOKEN", "?sig=1");
	c = open_of((struct credentials_options){ .scheme = scheme("s3"),
						  .no_sign = true });
	CHECK(!result_of(c) && !signs_with(c, "", NULL));
	url = url_of(c, "s3://bbb/k");
	CHECK(!strcmp(url.host, "bbb.s3.eu-west-1.amazonaws.com"));
	url_request_fini(&url);
	credentials_close(c);
	c = open_of((struct credentials_options){ .scheme = scheme("http") });
	CHECK(!result_of(c) && !signs_with(c, "", NULL));
	CHECK(!credentials_refused(c, 0, &unauthorized));
	credentials_close(c);
	c = open_of((struct credentials_options){ .scheme = scheme("az") });
	CHECK(!result_of(c) && !signs_with(c, "", NULL));
	url = url_of(c, "az://c/k");
	CHECK(!strcmp(url.url, "https://acc.blob.core.windows.net/c/k?sig=1"));
	url_request_fini(&url);
	credentials_close(c);
	c = open_of((struct credentials_options){ .scheme = scheme("gs") });
	CHECK(!credentials_wait(c, 10000));
	CHECK(signs_with(c, "/auto/s3/", NULL) == false);
	CHECK(signs_with(c, "/eu-west-1/s3/", NULL));
	credentials_close(c);
}

static void bad_configuration_fails_at_once(void)
{
	struct credentials_options options = { .scheme = scheme("s3"),
					       .name = "s3://b/k",
					       .profile = "none" };
	struct credentials *c = NULL;

	begin();
	CHECK(credentials_open(&options, &fake.outside, &heard, &c) == -EACCES);
	CHECK(!c && has_heard("s3://b/k: profile none is neither"));
}

int main(void)
{
	log_init(&heard, hear, NULL);
	heard.every = true;
	heard.level = BETON_LOG_INFO;
	a_session_is_found_in_the_background();
	renewals_come_before_the_end();
	short_sessions_are_renewed_in_time();
	failed_renewals_are_tried_again();
	no_session_is_final();
	silence_is_no_service();
	a_first_session_has_few_attempts();
	a_pause_ends_the_thread();
	refused_sessions_are_renewed_once();
	variables_cannot_be_renewed();
	files_are_read_again();
	no_other_place_is_searched();
	clocks_are_corrected();
	buckets_move();
	header_files();
	bad_header_files_are_refused();
	some_need_no_session();
	bad_configuration_fails_at_once();
	log_fini(&heard);
	return 0;
}
