/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_STATUS_H
#define TUTTI_STATUS_H

/* What calls return, and its texts. Part of tutti.h, which is what to include. */

#ifdef __cplusplus
extern "C" {
#endif

/* Every status that a call of Tutti can return. The enum, the texts and the documentation are made
 * from this list. X(name, value, text): TUTTI_STATUS_MAP(X) is the list.
 *
 * 0 is success, > 0 is "not yet", < 0 is an error. A value <= -20 means that the communicator is
 * lost: every later call on it fails with the same status, and only tutti_comm_shrink(),
 * tutti_comm_destroy() and tutti_comm_abort() are of use. */
#define TUTTI_STATUS_MAP(X)                                            \
	X(OK, 0, "success")                                            \
	X(AGAIN, 1, "not finished, call again")                        \
	X(EINVAL, -1, "invalid argument")                              \
	X(ENOMEM, -2, "out of memory")                                 \
	X(ESYS, -3, "system call failed")                              \
	X(EUSAGE, -4, "call not allowed in this state")                \
	X(EUNSUPPORTED, -5, "not supported")                           \
	X(EINTERNAL, -6, "internal error, please report it")           \
	X(ECANCELED, -7, "cancelled")                                  \
	X(EPEER, -20, "a peer failed or left")                         \
	X(ETIMEOUT, -21, "a deadline passed")                          \
	X(EMISMATCH, -22, "ranks called different things")             \
	X(EABORTED, -23, "the communicator was aborted")               \
	X(EPROTO, -24, "a peer sent what the protocol does not allow") \
	X(EPLAN, -25, "ranks hold different plans")                    \
	X(EREVOKED, -26, "the communicator was revoked")

typedef enum tutti_status {
#define X(name, value, text) TUTTI_##name = (value),
	TUTTI_STATUS_MAP(X)
#undef X
} tutti_status;

/* The first status of the range that means "this communicator is lost". */
#define TUTTI_STATUS_LOST (-20)

#if defined(__GNUC__)
#define TUTTI_API               __attribute__((visibility("default")))
#define TUTTI_CHECKED           __attribute__((warn_unused_result))
#define TUTTI_DEPRECATED(name)  __attribute__((deprecated("its name is " name " now")))
#define TUTTI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TUTTI_API
#define TUTTI_CHECKED
#define TUTTI_DEPRECATED(name)
#define TUTTI_PRINTF(fmt, args)
#endif

/* The text of a status, as "a peer failed or left" for TUTTI_EPEER. Never NULL, never to be freed.
 * Any thread. */
TUTTI_API const char *tutti_status_string(tutti_status status);

/* The name of a status, as "TUTTI_EPEER" for TUTTI_EPEER. Never NULL, never to be freed. Any
 * thread. */
TUTTI_API const char *tutti_status_name(tutti_status status);

#ifdef __cplusplus
}
#endif

#endif
