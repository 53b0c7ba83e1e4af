/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/tree/busid.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Read min to max digits at *text, and move *text behind them. false: there are not so many. */
static bool digits(const char **text, int min, int max, uint64_t *out)
{
	int n = 0;

	*out = 0;
	for (int digit; n < max && (digit = hex_digit(**text)) >= 0; n++, (*text)++)
		*out = *out << 4 | (unsigned)digit;
	return n >= min;
}

static bool sign(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

bool tti_busid_parse(const char *text, uint64_t *out)
{
	uint64_t domain, bus, device, function;

	if (!digits(&text, 4, 8, &domain) || !sign(&text, ':') || !digits(&text, 2, 2, &bus) ||
	    !sign(&text, ':') || !digits(&text, 2, 2, &device) || !sign(&text, '.') ||
	    !digits(&text, 1, 1, &function) || *text != '\0')
		return false;
	*out = domain << 20 | bus << 12 | device << 4 | function;
	return true;
}

bool tti_busid_of_path(const char *path, size_t len, uint64_t *out)
{
	char part[TTI_BUSID_TEXT];
	size_t n = 0;

	while (n < len && path[len - 1 - n] != '/')
		n++;
	if (n >= sizeof(part))
		return false;
	memcpy(part, path + len - n, n);
	part[n] = '\0';
	return tti_busid_parse(part, out);
}

char *tti_busid_format(uint64_t busid, char buf[TTI_BUSID_TEXT])
{
	snprintf(buf, TTI_BUSID_TEXT, "%04" PRIx64 ":%02x:%02x.%x", busid >> 20 & 0xffffffff,
		 (unsigned)(busid >> 12 & 0xff), (unsigned)(busid >> 4 & 0xff),
		 (unsigned)(busid & 0xf));
	return buf;
}
