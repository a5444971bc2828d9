/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/html.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fs/files/outfile.h"
#include "loader/util/utf8.h"

enum { CONVERSION_SIZE = 16 };

static const char frame[] =
#include "loader/tools/ui/page.html.inc"
	;

static const char base[] =
#include "loader/tools/ui/page.css.inc"
	;

/* --- the file ------------------------------------------------------------ */

/* A stream that writes to an outfile from its start to its end. */
struct writing {
	struct outfile *file;
	uint64_t off;
	int error;
};

static ssize_t write_on(void *cookie, const char *bytes, size_t size)
{
	struct writing *w = cookie;

	if (!w->error)
		w->error = outfile_write(w->file, bytes, size, w->off);
	if (w->error)
		return 0;
	w->off += size;
	return (ssize_t)size;
}

static int write_file(struct writing *w, const char *path, struct log *log,
		      html_write_fn *write, void *arg)
{
	FILE *out = fopencookie(w, "w",
				(cookie_io_functions_t){ .write = write_on });
	int r;

	if (!out) {
		log_error(log, "%s: out of memory", path);
		return -ENOMEM;
	}
	r = write(out, arg);
	fclose(out);
	return r ? r : w->error;
}

int html_save(const char *path, struct log *log, html_write_fn *write,
	      void *arg)
{
	struct writing w = { .off = 0 };
	int r;

	if (!path)
		return write(stdout, arg);
	r = outfile_open(path, false, log, &w.file);
	if (r)
		return r;
	r = write_file(&w, path, log, write, arg);
	if (!r)
		return outfile_publish(&w.file);
	outfile_abort(&w.file);
	return r;
}

/* --- text ---------------------------------------------------------------- */

static bool is_control(const uint8_t *s, size_t n)
{
	if (n == 2)
		return s[0] == 0xc2 && s[1] < 0xa0;
	return n == 1 &&
	       (s[0] == 0x7f || (s[0] < ' ' && s[0] != '\n' && s[0] != '\t'));
}

static const char *entity_of(uint8_t c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void html_text_of(FILE *out, const void *bytes, size_t size)
{
	const uint8_t *s = bytes, *end = s + size;
	const char *e;
	size_t n;

	for (; s < end; s += n ? n : 1) {
		n = utf8_length(s, (size_t)(end - s));
		e = entity_of(*s);
		if (!n)
			fputs("\xef\xbf\xbd", out);
		else if (is_control(s, n))
			fputc(' ', out);
		else if (e)
			fputs(e, out);
		else
			fwrite(s, 1, n, out);
	}
}

bool html_is_text(const void *bytes, size_t size)
{
	const uint8_t *s = bytes;
	size_t length;

	for (size_t i = 0; i < size; i += length) {
		length = utf8_length(s + i, size - i);
		if (!length || (is_control(s + i, length) && s[i] != '\r'))
			return false;
	}
	return true;
}

size_t html_whole(const void *bytes, size_t size)
{
	const uint8_t *s = bytes;
	size_t n = size;

	/* The last character begins within the last four bytes. */
	while (n && size - n < 3 && (s[n - 1] & 0xc0) == 0x80)
		n--;
	if (n && s[n - 1] >= 0xc0 && !utf8_length(s + n - 1, size - n + 1))
		return n - 1;
	return size;
}

void html_text(FILE *out, const char *text)
{
	html_text_of(out, text, strlen(text));
}

/* Writes one conversion of a format, such as "%.1f", and its argument. */
static void print_conversion(FILE *out, const char *conversion, size_t size,
			     va_list *args)
{
	char format[CONVERSION_SIZE];

	snprintf(format, sizeof(format), "%.*s", (int)size, conversion);
	switch (conversion[size - 1]) {
	case 's':
		html_text(out, va_arg(*args, const char *));
		break;
	case 'f':
	case 'g':
		fprintf(out, format, va_arg(*args, double));
		break;
	case '%':
		fputc('%', out);
		break;
	default:
		if (strstr(format, "ll"))
			fprintf(out, format, va_arg(*args, unsigned long long));
		else if (strchr(format, 'z'))
			fprintf(out, format, va_arg(*args, size_t));
		else
			fprintf(out, format, va_arg(*args, unsigned));
	}
}

void html_print(FILE *out, const char *format, ...)
{
	va_list args;
	size_t n;

	va_start(args, format);
	while (*format) {
		n = strcspn(format, "%");
		fwrite(format, 1, n, out);
		format += n;
		if (!*format)
			break;
		n = strcspn(format + 1, "sfgdux%") + 2;
		print_conversion(out, format, n, &args);
		format += n;
	}
	va_end(args);
}

static const struct html_part *find_part(const struct html_part *parts,
					 const char *name, size_t size)
{
	for (; parts && parts->name; parts++)
		if (!strncmp(parts->name, name, size) && !parts->name[size])
			return parts;
	return NULL;
}

static void write_part(FILE *out, const struct html_part *part, const void *arg)
{
	if (part->text)
		html_text(out, part->text);
	else if (part->markup)
		fputs(part->markup, out);
	else
		part->write(out, arg);
}

/* Writes `text` with its parts; a brace that names none stands for itself. */
static void write_template(FILE *out, const char *text,
			   const struct html_part *parts, const void *arg)
{
	const struct html_part *part;
	size_t n;

	while (*text) {
		n = strcspn(text + 1, "{}");
		part = *text == '{' && text[n + 1] == '}'
			       ? find_part(parts, text + 1, n)
			       : NULL;
		if (part)
			write_part(out, part, arg);
		else
			fwrite(text, 1, n + 1, out);
		text += part ? n + 2 : n + 1;
	}
}

static void write_body(FILE *out, const void *arg)
{
	const struct html_page *page = arg;

	write_template(out, page->body, page->parts, page->arg);
}

void html_page(FILE *out, const struct html_page *page)
{
	const struct html_part parts[] = {
		{ "title", .text = page->title },
		{ "base", .markup = base },
		{ "style", .markup = page->style },
		{ "body", .write = write_body },
		{ .name = NULL },
	};

	write_template(out, frame, parts, page);
}

void html_jpeg(FILE *out, const void *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *s = bytes;
	uint32_t word;

	fputs("data:image/jpeg;base64,", out);
	for (size_t i = 0; i < size; i += 3) {
		word = (uint32_t)s[i] << 16;
		word |= i + 1 < size ? (uint32_t)s[i + 1] << 8 : 0;
		word |= i + 2 < size ? s[i + 2] : 0;
		fputc(digits[word >> 18], out);
		fputc(digits[word >> 12 & 63], out);
		fputc(i + 1 < size ? digits[word >> 6 & 63] : '=', out);
		fputc(i + 2 < size ? digits[word & 63] : '=', out);
	}
}

const char *html_count(uint64_t n, char text[HTML_NUMBER_SIZE])
{
	char digits[24];
	int size =
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	char *to = text;

	for (int i = 0; i < size; i++) {
		if (i && (size - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return text;
}

const char *html_bytes(double n, char text[HTML_NUMBER_SIZE])
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB" };
	size_t i = 0;

	if (n < 999.5) {
		snprintf(text, HTML_NUMBER_SIZE, "%.0f B", n);
		return text;
	}
	for (n /= 1000; n >= 999.5 && i + 1 < sizeof(units) / sizeof(*units);
	     i++)
		n /= 1000;
	snprintf(text, HTML_NUMBER_SIZE, n < 999.5 ? "%.3g %s" : "%.0f %s", n,
		 units[i]);
	return text;
}

const char *html_percent(double part, double all, char text[HTML_NUMBER_SIZE])
{
	double v = all > 0 ? 100 * part / all : 0;

	if (v > 0 && v < 0.1)
		snprintf(text, HTML_NUMBER_SIZE, "under 0.1 %%");
	else if (v > 99.9 && v < 100)
		snprintf(text, HTML_NUMBER_SIZE, "over 99.9 %%");
	else
		snprintf(text, HTML_NUMBER_SIZE, "%.3g %%", v);
	return text;
}

/* --- pictures ------------------------------------------------------------ */

struct html_bar html_bar(const char *name, double value, bool marked,
			 const char *format, ...)
{
	struct html_bar b = { .value = value, .marked = marked };
	va_list args;

	snprintf(b.name, sizeof(b.name), "%.60s", name);
	va_start(args, format);
	vsnprintf(b.number, sizeof(b.number), format, args);
	va_end(args);
	return b;
}

static double share_of(double value, double most)
{
	return most > 0 ? fmin(fmax(value / most, 0), 1) : 0;
}

void html_bars(FILE *out, const char *title, const struct html_bar *bars,
	       size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, bars[i].value);
	html_print(out, "<table class=\"bars\" aria-label=\"%s\">\n", title);
	for (size_t i = 0; i < n; i++) {
		html_print(out, "<tr><th scope=\"row\">%s</th><td>",
			   bars[i].name);
		fputs(bars[i].marked ? "<i class=\"m\"" : "<i", out);
		html_print(
			out,
			" style=\"width:%.1f%%\"></i></td><td class=\"n\">%s</td></tr>\n",
			100 * share_of(bars[i].value, most), bars[i].number);
	}
	fputs("</table>\n", out);
}

/* A histogram, in units of its picture. */
enum {
	WIDTH = 340,
	TALL = 92, /* the highest column */
	FLOOR = TALL + 4,
	HEIGHT = FLOOR + 16,
	TICK_ROOM = 30, /* for half of the text of a tick, on each side */
};

static void draw_column(FILE *out, const struct html_column *c, double most,
			double left, double width)
{
	double tall = share_of(c->value, most) * TALL;

	/* A small value is visible, too. */
	if (c->value > 0)
		tall = fmax(tall, 1);
	html_print(
		out,
		"<g><title>%s</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></g>\n",
		c->title, left, FLOOR - tall, width > 4 ? width - 1 : width,
		tall);
}

static void draw_tick(FILE *out, const char *text, double at)
{
	html_print(
		out,
		"<path d=\"M%.1f %dv4\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>\n",
		at, FLOOR, at, HEIGHT - 2,
		at < TICK_ROOM		 ? "start"
		: at > WIDTH - TICK_ROOM ? "end"
					 : "middle",
		text);
}

void html_columns(FILE *out, const char *title,
		  const struct html_column *columns, size_t n)
{
	double most = 0, width = (double)WIDTH / (double)(n ? n : 1);

	for (size_t i = 0; i < n; i++)
		most = fmax(most, columns[i].value);
	html_print(
		out,
		"<svg role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %d %d\">\n",
		title, WIDTH, HEIGHT);
	for (size_t i = 0; i < n; i++)
		draw_column(out, &columns[i], most, width * (double)i, width);
	fprintf(out, "<path d=\"M0 %d.5H%d\"/>\n", FLOOR, WIDTH);
	for (size_t i = 0; i < n; i++)
		if (columns[i].tick[0])
			draw_tick(out, columns[i].tick, width * (double)i);
	fputs("</svg>\n", out);
}
