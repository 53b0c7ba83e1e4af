/* SPDX-License-Identifier: BSD-3-Clause */
#include "tutti/status.h"

const char *tutti_status_string(tutti_status status)
{
	switch (status) {
#define X(name, value, text) \
	case TUTTI_##name:   \
		return text;
		TUTTI_STATUS_MAP(X)
#undef X
	}
	return "unknown status";
}

const char *tutti_status_name(tutti_status status)
{
	switch (status) {
#define X(name, value, text) \
	case TUTTI_##name:   \
		return "TUTTI_" #name;
		TUTTI_STATUS_MAP(X)
#undef X
	}
	return "TUTTI_?";
}
