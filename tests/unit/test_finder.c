/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/finder.h"

#include "fs/base/util/bytes.h"
#include "tests/unit/outside.h"

static struct fake fake;
static struct finder_options options;

static void begin(void)
{
	fake_init(&fake);
	options = (struct finder_options){ 0 };
}

static void set(const char *name, const char *value)
{
	fake_set(&fake, fake.variables, name, value);
}

static void write_file(const char *path, const char *text)
{
	fake_set(&fake, fake.files, path, text);
}

/* The keys as "ID SECRET TOKEN", or "!" and the reason; valid until the next
   call. */
static const char *find(void)
{
	static char out[1024];
	static const bool stop;
	struct search search = { .outside = &fake.outside, .stop = &stop };
	struct session session = { 0 };
	struct finder finder;
	int r = finder_init(&finder, &options, &search);

	r = r ? r : finder_find(&finder, &search, &session);
	if (r) {
		CHECK(r == -EACCES || r == -EAGAIN || r == -ENOENT);
		CHECK(search.why[0]);
		snprintf(out, sizeof(out), "%c%s", r == -EAGAIN ? '?' : '!',
			 search.why);
	} else {
		snprintf(out, sizeof(out), "%s %s %s",
			 session.id ? session.id : "",
			 session.secret ? session.secret : "",
			 session.token ? session.token : "");
	}
	session_fini(&session);
	finder_fini(&finder);
	return out;
}

static void check_found(const char *expected)
{
	const char *got = find();

	if (strncmp(got, expected, strlen(expected)) != 0)
		fprintf(stderr, "%s\nexpected %s\n", got, expected);
	CHECK(!strncmp(got, expected, strlen(expected)));
}

static void variables_come_first(void)
{
	begin();
	check_found("!there are no credentials");
	set("AWS_ACCESS_KEY_ID", "ID");
	check_found("!one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
	set("AWS_SECRET_ACCESS_KEY", "SECRET");
	check_found("ID SECRET ");
	set("AWS_SESSION_TOKEN", "TOKEN");
	write_file("/home/me/.aws/credentials",
		   "[default]\naws_access_key_id=A\naws_secret_access_key=B\n"
		   "[x]\naws_access_key_id=C\naws_secret_access_key=D\n");
	check_found("ID SECRET TOKEN");
	set("AWS_PROFILE", "x");
	check_found("ID SECRET TOKEN");
	options.profile = "x";
	check_found("C D ");
	set("AWS_SECRET_ACCESS_KEY", "a\nb");
	options.profile = NULL;
	check_found("!AWS_ACCESS_KEY_ID, AWS_SECRET");
}

static void profiles_have_keys(void)
{
	begin();
	write_file("/home/me/.aws/config",
		   "[default]\naws_access_key_id=1\naws_secret_access_key=2\n"
		   "[profile  'my own']\naws_access_key_id=3\n"
		   "aws_secret_access_key=4\naws_session_token=5\n"
		   "[profile half]\naws_access_key_id=3\n"
		   "[profile sso]\nsso_session = x\n"
		   "[bare]\naws_access_key_id=6\naws_secret_access_key=7\n");
	check_found("1 2 ");
	set("AWS_PROFILE", "my own");
	check_found("3 4 5");
	set("AWS_PROFILE", "half");
	check_found("!profile half: it has one of");
	set("AWS_PROFILE", "sso");
	check_found("!profile sso uses SSO; write");
	set("AWS_PROFILE", "bare");
	check_found("!profile bare is neither");
	set("AWS_PROFILE", NULL);
	write_file("/home/me/.aws/credentials",
		   "[default]\naws_access_key_id=8\naws_secret_access_key=9\n");
	check_found("8 9 ");
	set("AWS_CONFIG_FILE", "~/other");
	check_found("!~/other: No such file");
	write_file("/home/me/other", "");
	check_found("8 9 ");
	set("AWS_SHARED_CREDENTIALS_FILE", "/c");
	check_found("!/c: No such file");
	write_file("/c", "[profile default]\n[default]\n"
			 "aws_access_key_id=10\naws_secret_access_key=11");
	check_found("10 11 ");
}

static void programs_print_keys(void)
{
	begin();
	write_file("/home/me/.aws/config",
		   "[default]\ncredential_process = get --it\n");
	check_found(
		"!credential_process of profile default (get): No such file");
	fake_set(&fake, fake.programs, "get --it",
		 "{\"Version\": 1, \"AccessKeyId\": \"P\", "
		 "\"SecretAccessKey\": \"Q\", \"SessionToken\": \"R\", "
		 "\"Expiration\": \"2024-01-01T00:00:00Z\"}");
	check_found("P Q R");
	fake_set(&fake, fake.programs, "get --it",
		 "{\"AccessKeyId\": \"P\", \"SecretAccessKey\": \"Q\"}");
	check_found("!credential_process of profile default (get): Version");
	fake_set(&fake, fake.programs, "get --it", "{\"Version\": 1}");
	check_found(
		"!credential_process of profile default (get): the answer lacks");
	fake_set(&fake, fake.programs, "get --it", "P Q R");
	check_found(
		"!credential_process of profile default (get): the answer is no");
	fake_set(&fake, fake.programs, "get --it",
		 "{\"Version\": 1, \"AccessKeyId\": \"P\", "
		 "\"SecretAccessKey\": \"Q\", \"Expiration\": \"soon\"}");
	check_found("!credential_process of profile default (get): Expiration");
	fake_set(&fake, fake.programs, "get --it",
		 "{\"Version\": 1, \"AccessKeyId\": \"P\", "
		 "\"SecretAccessKey\": \"Q\", "
		 "\"Expiration\": \"2020-01-01T00:00:00Z\"}");
	check_found("!credential_process of profile default (get): its "
		    "credentials have expired: Expiration is "
		    "2020-01-01T00:00:00Z, ");
	write_file("/home/me/.aws/config",
		   "[default]\ncredential_process = \"/a b/get\" SECRET\n");
	check_found("!credential_process of profile default (/a b/get): No");
}

static const char assumed[] =
	"<AssumeRoleResponse><AssumeRoleResult><Credentials>"
	"<AccessKeyId>S1</AccessKeyId><SecretAccessKey>S2</SecretAccessKey>"
	"<SessionToken>S3==</SessionToken>"
	"<Expiration>2023-11-14T23:13:20Z</Expiration>"
	"</Credentials></AssumeRoleResult></AssumeRoleResponse>";

static void roles_are_assumed(void)
{
	begin();
	write_file("/home/me/.aws/config",
		   "[default]\nregion = eu-west-1\nrole_arn = arn:r/1\n"
		   "source_profile = base\nexternal_id = e+1\n"
		   "duration_seconds = 900\n"
		   "[profile base]\naws_access_key_id=B1\n"
		   "aws_secret_access_key=B2\n");
	fake_answer(&fake, "POST https://sts.eu-west-1.amazonaws.com/", 200,
		    assumed);
	check_found("S1 S2 S3==");
	CHECK(strstr(fake.sent,
		     "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Ar%2F1&"
		     "RoleSessionName=betonfs-1700000000&DurationSeconds=900&"
		     "ExternalId=e%2B1\n"));
	CHECK(strstr(fake.sent, "Credential=B1/20231114/eu-west-1/sts/aws4"));
	CHECK(strstr(fake.sent, "\nx-amz-content-sha256: "));
	CHECK(!strstr(fake.sent, "B2"));
	set("AWS_ENDPOINT_URL_STS", "http://h:1/x");
	fake_answer(&fake, "POST http://h:1/x", 403,
		    "<ErrorResponse><Error><Code>AccessDenied</Code>"
		    "<Message>not &lt;you&gt;</Message></Error>"
		    "</ErrorResponse>");
	check_found("!STS: AccessDenied: not <you>");
	fake_answer(&fake, "POST http://h:1/x", 400,
		    "<Error><Code>Throttling</Code></Error>");
	check_found("?STS: Throttling");
	fake_answer(&fake, "POST http://h:1/x", 503, "");
	check_found("?STS: HTTP status 503");
	fake_answer(&fake, "POST http://h:1/x", 200, "<a>");
	check_found("?STS: the answer has no session");
	fake_answer(&fake, "POST http://h:1/x", -ETIMEDOUT, "");
	check_found("?STS: Connection timed out");
	set("AWS_ENDPOINT_URL_STS", "ftp://h");
	check_found("!STS: the endpoint: the scheme");
}

static void roles_have_sources(void)
{
	begin();
	set("AWS_ENDPOINT_URL", "http://h:1");
	fake_answer(&fake, "POST http://h:1/", 200, assumed);
	write_file("/home/me/.aws/config",
		   "[default]\nrole_arn = 1\nsource_profile = b\n"
		   "[profile b]\nrole_arn = 2\nsource_profile = default\n"
		   "[profile self]\nrole_arn = 3\nsource_profile = self\n"
		   "aws_access_key_id=B1\naws_secret_access_key=B2\n"
		   "[profile env]\nrole_arn = 4\n"
		   "credential_source = Environment\n"
		   "[profile none]\nrole_arn = 5\n"
		   "[profile mfa]\nrole_arn = 6\nmfa_serial = 1\n"
		   "[profile ecs]\nrole_arn = 7\n"
		   "credential_source = EcsContainer\n"
		   "[profile web]\nrole_arn = 8\n"
		   "web_identity_token_file = /t\n");
	check_found("!profile default: source_profile leads in a circle");
	options.profile = "self";
	check_found("S1 S2 S3==");
	options.profile = "env";
	check_found("!profile env: role_arn needs");
	set("AWS_ACCESS_KEY_ID", "E1");
	set("AWS_SECRET_ACCESS_KEY", "E2");
	check_found("S1 S2 S3==");
	CHECK(strstr(fake.sent, "Credential=E1/"));
	options.profile = "none";
	check_found("!profile none: role_arn needs");
	options.profile = "mfa";
	check_found("!profile mfa: mfa_serial");
	options.profile = "ecs";
	check_found("!profile ecs: role_arn needs");
	options.profile = "web";
	check_found("?/t: No such file");
	write_file("/t", "WEB TOKEN\n");
	check_found("S1 S2 S3==");
	CHECK(strstr(fake.sent, "&WebIdentityToken=WEB%20TOKEN\n"));
}

static void web_identity(void)
{
	begin();
	set("AWS_WEB_IDENTITY_TOKEN_FILE", "/token");
	check_found("!AWS_WEB_IDENTITY_TOKEN_FILE is set, but");
	set("AWS_ROLE_ARN", "arn");
	set("AWS_ROLE_SESSION_NAME", "me");
	check_found("?/token: No such file");
	write_file("/token", "\n");
	check_found("?/token: empty");
	write_file("/token", "T1\n");
	fake_answer(&fake, "POST https://sts.amazonaws.com/", 200, assumed);
	check_found("S1 S2 S3==");
	CHECK(strstr(fake.sent, "Action=AssumeRoleWithWebIdentity&Version="
				"2011-06-15&RoleArn=arn&RoleSessionName=me&"
				"WebIdentityToken=T1\n"));
	CHECK(!strstr(fake.sent, "Authorization"));
	write_file("/token", "T2");
	check_found("S1 S2 S3==");
	CHECK(strstr(fake.sent, "WebIdentityToken=T2\n"));
	fake_answer(&fake, "POST https://sts.amazonaws.com/", 400,
		    "<Error><Code>ExpiredTokenException</Code></Error>");
	check_found("?STS: ExpiredTokenException");
}

static const char metadata[] =
	"{\"Code\": \"Success\", \"AccessKeyId\": \"M1\", \"SecretAccessKey\":"
	" \"M2\", \"Token\": \"M3\", \"Expiration\": \"2023-11-15T00:00:00Z\"}";

static void containers(void)
{
	static const char *const bad[] = { "http://example.com/x",
					   "http://169.254.170.3/",
					   "ftp://localhost/", "x" };

	begin();
	set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x");
	fake_answer(&fake, "GET http://169.254.170.2/v2/x", 200, metadata);
	check_found("M1 M2 M3");
	set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", NULL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		set("AWS_CONTAINER_CREDENTIALS_FULL_URI", bad[i]);
		check_found("!AWS_CONTAINER_CREDENTIALS_FULL_URI: ");
	}
	set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://[fd00:ec2::23]/v1");
	set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "first");
	fake_answer(&fake, "GET http://[fd00:ec2::23]/v1", 200, metadata);
	check_found("M1 M2 M3");
	CHECK(strstr(fake.sent, "\nAuthorization: first\n"));
	set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/pod");
	check_found("?/pod: No such file");
	write_file("/pod", "second\n");
	check_found("M1 M2 M3");
	CHECK(strstr(fake.sent, "\nAuthorization: second\n"));
	write_file("/pod", "a\r\nb");
	check_found("!container credentials: the token has control");
	write_file("/pod", "c");
	fake_answer(&fake, "GET http://[fd00:ec2::23]/v1", 500, "");
	check_found("?container credentials: HTTP status 500");
	fake_answer(&fake, "GET http://[fd00:ec2::23]/v1", 200,
		    "{\"Code\": \"Broken\"}");
	check_found("?container credentials: Broken");
	fake_answer(&fake, "GET http://[fd00:ec2::23]/v1", 200,
		    "{\"AccessKeyId\": \"M1\", \"SecretAccessKey\": \"M2\", "
		    "\"Expiration\": \"2020-01-01T00:00:00Z\"}");
	check_found("!container credentials: its credentials have expired");
	fake_answer(&fake, "GET http://[fd00:ec2::23]/v1", 200, "[]");
	check_found("?container credentials: the answer is no JSON");
}

#define IMDS "http://169.254.169.254/latest/"

static void instances(void)
{
	begin();
	fake_answer(&fake, "PUT " IMDS "api/token", 200, "TOKEN");
	fake_answer(&fake, "GET " IMDS "meta-data/iam/security-credentials/",
		    200, "my role\nother");
	fake_answer(&fake,
		    "GET " IMDS "meta-data/iam/security-credentials/my%20role",
		    200, metadata);
	check_found("M1 M2 M3");
	CHECK(strstr(fake.sent, "\nX-aws-ec2-metadata-token-ttl-seconds: "));
	CHECK(strstr(fake.sent, "\nX-aws-ec2-metadata-token: TOKEN\n"));
	set("AWS_EC2_METADATA_DISABLED", "True");
	check_found("!there are no credentials");
	set("AWS_EC2_METADATA_DISABLED", "");
	fake_answer(&fake, "PUT " IMDS "api/token", 500, "");
	check_found("?EC2 instance metadata: HTTP status 500");
	fake_answer(&fake, "PUT " IMDS "api/token", -ETIMEDOUT, "");
	check_found("?EC2 instance metadata: Connection timed out");
	fake_answer(&fake, "PUT " IMDS "api/token", 200, "a\nb");
	check_found("?EC2 instance metadata: the token is no text");
	fake_answer(&fake, "PUT " IMDS "api/token", 404, "");
	fake.sent[0] = '\0';
	check_found("M1 M2 M3");
	CHECK(!strstr(fake.sent, "X-aws-ec2-metadata-token: "));
	set("AWS_EC2_METADATA_V1_DISABLED", "true");
	check_found("!there are no credentials");
	fake_answer(&fake, "PUT " IMDS "api/token", 200, "TOKEN");
	fake_answer(&fake, "GET " IMDS "meta-data/iam/security-credentials/",
		    404, "");
	check_found("!there are no credentials");
	/* A proxy answers instead of the service. */
	fake_answer(&fake, "PUT " IMDS "api/token", 403, "<html>");
	fake_answer(&fake, "GET " IMDS "meta-data/iam/security-credentials/",
		    403, "<html>");
	check_found("!there are no credentials");
	fake_answer(&fake, "PUT " IMDS "api/token", 302, "<html>");
	check_found("!there are no credentials");
	fake_answer(&fake, "PUT " IMDS "api/token", 429, "");
	check_found("?EC2 instance metadata: HTTP status 429");
	set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://h:1/");
	fake_answer(&fake, "PUT http://h:1/latest/api/token", 503, "");
	check_found("?EC2 instance metadata: HTTP status 503");
}

static void google_machines(void)
{
	begin();
	options.is_google = true;
	check_found("!there are no credentials");
	fake_answer(&fake, "GET http://169.254.169.254/", 403, "<html>");
	check_found("!there are no credentials");
	fake_answer(&fake,
		    "GET http://169.254.169.254/computeMetadata/v1/instance/"
		    "service-accounts/default/token",
		    200,
		    "{\"access_token\": \"ya29.x\", \"expires_in\": 3599, "
		    "\"token_type\": \"Bearer\"}");
	check_found("  ya29.x");
	CHECK(strstr(fake.sent, "\nMetadata-Flavor: Google\n"));
	set("GCE_METADATA_HOST", "h:1");
	fake_answer(&fake, "GET http://h:1/computeMetadata/", 200, "{}");
	check_found("?Google's metadata service: the answer lacks");
	set("AWS_ACCESS_KEY_ID", "HMAC1");
	set("AWS_SECRET_ACCESS_KEY", "HMAC2");
	check_found("HMAC1 HMAC2");
}

/* finder_init() finds "REGION ENDPOINT STYLE", or has the reason. */
static void check_place(const char *expected)
{
	struct search search = { .outside = &fake.outside };
	struct finder finder;
	char got[600];

	if (finder_init(&finder, &options, &search))
		snprintf(got, sizeof(got), "!%s", search.why);
	else
		snprintf(got, sizeof(got), "%s %s %d",
			 finder.region ? finder.region : "-",
			 finder.endpoint ? finder.endpoint : "-", finder.style);
	finder_fini(&finder);
	if (strcmp(got, expected))
		fprintf(stderr, "%s\nexpected %s\n", got, expected);
	CHECK(!strcmp(got, expected));
}

static void places_have_an_order(void)
{
	begin();
	check_place("- - 0");
	write_file("/home/me/.aws/config",
		   "[default]\nregion = r1\nendpoint_url = http://p\n"
		   "s3 =\n  addressing_style = path\n"
		   "[profile s]\nservices = mine\n"
		   "s3 =\n  addressing_style = virtual\n"
		   "[services mine]\ns3 =\n  endpoint_url = http://s\n"
		   "[profile odd]\ns3 =\n  addressing_style = odd\n");
	check_place("r1 http://p 1");
	options.profile = "s";
	check_place("- http://s 2");
	options.profile = "odd";
	check_place("!profile odd: s3.addressing_style is none of auto, path, "
		    "virtual");
	options.profile = NULL;
	set("AWS_DEFAULT_REGION", "r2");
	set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
	check_place("r2 - 1");
	set("AWS_REGION", "r3");
	set("AWS_ENDPOINT_URL", "http://e");
	check_place("r3 http://e 1");
	set("AWS_ENDPOINT_URL_S3", "http://e3");
	check_place("r3 http://e3 1");
	options.region = "r4";
	options.endpoint = "http://o";
	check_place("r4 http://o 1");
	options.region = "r4\r\nX-Evil: 1";
	check_place("!the region has other characters than letters, digits, "
		    "and . - _");
	options.region = "r4";
	options.is_google = true;
	options.endpoint = NULL;
	check_place("r4 - 1");
}

static void times_are_parsed(void)
{
	static const struct {
		const char *text;
		time_t time;
	} table[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2023-11-14T22:13:20Z", 1700000000 },
		{ "2023-11-14T22:13:20.123456Z", 1700000000 },
		{ "2023-11-14T22:13:20", 1700000000 },
		{ "2023-11-14T23:13:20+01:00", 1700000000 },
		{ "2023-11-14T20:13:20-0200", 1700000000 },
	};
	static const char *const bad[] = {
		"",
		"2023-11-14",
		"2023-11-14 22:13:20Z",
		"2023-13-14T22:13:20Z",
		"2023-11-14T25:13:20Z",
		"2023-11-14T22:13:20Zx",
		"2023-11-14T22:13:20+1",
		"1700000000",
	};
	time_t t;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		CHECK(session_parse_time(table[i].text, &t));
		CHECK(t == table[i].time);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!session_parse_time(bad[i], &t));
}

int main(void)
{
	variables_come_first();
	profiles_have_keys();
	programs_print_keys();
	roles_are_assumed();
	roles_have_sources();
	web_identity();
	containers();
	instances();
	google_machines();
	places_have_an_order();
	times_are_parsed();
	return 0;
}
