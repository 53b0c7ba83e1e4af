/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/pci_link.h"

#include <stdlib.h>
#include <string.h>

/* The configuration space: offsets of its header and of the PCI Express capability. A process
 * that is not root can read 64 bytes of it. */
#define CONFIG_BYTES  256
#define STATUS        0x06
#define STATUS_LIST   0x10
#define FIRST         0x34
#define CAP_EXPRESS   0x10
#define EXPRESS_FLAGS 0x02
#define EXPRESS_LINK  0x0c

struct config {
	unsigned char at[CONFIG_BYTES];
	size_t express; /* where the PCI Express capability is, 0: none seen */
};

/* The parts of the capability that are used must lie within the bytes that were read. The list
 * may be a loop; there is no room for more than 48 capabilities. */
static size_t find_express(const unsigned char *config, size_t nbytes)
{
	size_t at;

	if (nbytes <= FIRST || !(config[STATUS] & STATUS_LIST))
		return 0;
	at = config[FIRST] & ~3u;
	for (int i = 0; i < 48 && at >= 0x40 && at + EXPRESS_LINK + 4 <= nbytes; i++) {
		if (config[at] == CAP_EXPRESS)
			return at;
		at = config[at + 1] & ~3u;
	}
	return 0;
}

static void read_config(const struct tti_sysfs *sysfs, const char *path, struct config *out)
{
	const ssize_t n = tti_sysfs_bytes(sysfs, out->at, sizeof(out->at), "%s/config", path);

	out->express = n > 0 ? find_express(out->at, (size_t)n) : 0;
}

enum tti_pci_port tti_pci_link_port(const struct tti_sysfs *sysfs, const char *path)
{
	struct config config;

	read_config(sysfs, path, &config);
	if (config.express == 0)
		return TTI_PCI_PORT_UNKNOWN;
	switch (config.at[config.express + EXPRESS_FLAGS] >> 4) {
	case 4:
		return TTI_PCI_PORT_ROOT;
	case 5:
		return TTI_PCI_PORT_UPSTREAM;
	case 6:
		return TTI_PCI_PORT_DOWNSTREAM;
	case 7:
	case 8:
		return TTI_PCI_PORT_BRIDGE;
	default:
		return TTI_PCI_PORT_ENDPOINT;
	}
}

int tti_pci_link_decigts(int generation)
{
	static const int decigts[] = { 0, 25, 50, 80, 160, 320, 640, 1280 };

	return generation > 0 && (size_t)generation < sizeof(decigts) / sizeof(decigts[0])
		       ? decigts[generation]
		       : 0;
}

static struct tti_pci_link from_config(const struct tti_sysfs *sysfs, const char *path)
{
	struct tti_pci_link end = { 0 };
	struct config config;
	const unsigned char *link;

	read_config(sysfs, path, &config);
	if (config.express == 0)
		return end;
	link = config.at + config.express + EXPRESS_LINK;
	end.decigts = tti_pci_link_decigts(link[0] & 0xf);
	end.width = link[0] >> 4 | (link[1] & 3) << 4;
	return end;
}

/* Parse "16.0 GT/s PCIe" or "8 GT/s"; 0: anything else, such as "Unknown". Not by strtod(),
 * which depends on the locale. */
static int parse_speed(const char *text)
{
	char *end;
	const long whole = strtol(text, &end, 10);
	int tenths = 0;

	if (end == text || whole < 0 || whole > 10000)
		return 0;
	if (end[0] == '.' && end[1] >= '0' && end[1] <= '9') {
		tenths = end[1] - '0';
		end += 1 + strspn(end + 1, "0123456789");
	}
	return strncmp(end, " GT/s", 5) == 0 ? (int)whole * 10 + tenths : 0;
}

static int read_speed(const struct tti_sysfs *sysfs, const char *path, const char *file)
{
	char text[64];

	return tti_sysfs_line(sysfs, text, sizeof(text), "%s/%s", path, file) ? parse_speed(text)
									      : 0;
}

/* Links have up to 32 lanes; the kernel writes 0 or 255 where it does not know. */
static int read_width(const struct tti_sysfs *sysfs, const char *path, const char *file)
{
	int64_t width;

	return tti_sysfs_int(sysfs, &width, "%s/%s", path, file) && width > 0 && width <= 32
		       ? (int)width
		       : 0;
}

struct tti_pci_link tti_pci_link_max(const struct tti_sysfs *sysfs, const char *path)
{
	struct tti_pci_link end, said;

	end.decigts = read_speed(sysfs, path, "max_link_speed");
	if (end.decigts == 0)
		end.decigts = read_speed(sysfs, path, "current_link_speed");
	end.width = read_width(sysfs, path, "max_link_width");
	if (end.width == 0)
		end.width = read_width(sysfs, path, "current_link_width");
	if (end.decigts > 0 && end.width > 0)
		return end;
	said = from_config(sysfs, path);
	if (end.decigts == 0)
		end.decigts = said.decigts;
	if (end.width == 0 && said.width <= 32)
		end.width = said.width;
	return end;
}

struct tti_pci_link tti_pci_link_now(const struct tti_sysfs *sysfs, const char *path)
{
	return (struct tti_pci_link){
		.decigts = read_speed(sysfs, path, "current_link_speed"),
		.width = read_width(sysfs, path, "current_link_width"),
	};
}

/* -- In the tree ---------------------------------------------------------------------- */

/* Not "%g": the point depends on the locale. */
#define SPEED_FORMAT "%d.%d GT/s PCIe"

bool tti_pci_link_set(struct tti_xml_doc *doc, struct tti_xml *pci, const struct tti_pci_link *link)
{
	return (link->decigts <= 0 || tti_xml_setf(doc, pci, "link_speed", SPEED_FORMAT,
						   link->decigts / 10, link->decigts % 10)) &&
	       (link->width <= 0 || tti_xml_setf(doc, pci, "link_width", "%d", link->width));
}

bool tti_pci_link_set_now(struct tti_xml_doc *doc, struct tti_xml *pci,
			  const struct tti_pci_link *now)
{
	const char *speed = tti_xml_get(pci, "link_speed"), *width = tti_xml_get(pci, "link_width");

	if (now->decigts <= 0 || now->width <= 0 ||
	    (now->decigts >= (speed ? parse_speed(speed) : 0) &&
	     now->width >= (width ? atoi(width) : 0)))
		return true;
	return tti_xml_setf(doc, pci, "tutti_link_now", SPEED_FORMAT " x%d", now->decigts / 10,
			    now->decigts % 10, now->width);
}
