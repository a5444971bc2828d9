/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/html.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/files/outfile.h"
#include "fs/base/util/utf8.h"

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

	if (!out)
		return log_no_memory(log, path);
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

void html_text(FILE *out, const char *text)
{
	const uint8_t *s = (const uint8_t *)text, *end = s + strlen(text);
	const char *e;
	size_t n;

	for (; s < end; s += n ? n : 1) {
		n = utf8_length(s, (size_t)(end - s));
		e = entity_of(*s);
		if (!n)
			fputs("\xef\xbf\xbd", out);
		else if (utf8_is_control(s, n) && *s != '\n' && *s != '\t')
			fputc(' ', out);
		else if (e)
			fputs(e, out);
		else
			fwrite(s, 1, n, out);
	}
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
