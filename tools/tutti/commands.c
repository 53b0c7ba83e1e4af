/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole command line: each verb with its options, in the order in which --help shows them. */
#include "commands.h"

#include <limits.h>

#include "completion.h"
#include "doctor.h"
#include "env.h"
#include "perf.h"
#include "ping.h"
#include "plan.h"
#include "run.h"
#include "show.h"
#include "topo.h"
#include "tune.h"

/* The options of a table are fields of OPTIONS. AT() is where one is, and fails to compile for one
 * of another type. Behind the help may come .needs, .excludes, .names and .is_optional. */
#define AT(type, field) \
	(offsetof(OPTIONS, field) + 0 * sizeof(_Generic(((OPTIONS *)0)->field, type : 0)))

/* clang-format off */
#define ROW(short_name, long_name, value, what, place, least, most, ...)                         \
	{ .letter = short_name, .name = long_name, .metavar = value, .kind = what, .offset = place, \
	  .min = least, .max = most, .help = __VA_ARGS__ }
#define PLAIN(type, kind, letter, name, metavar, field, ...) \
	ROW(letter, name, metavar, kind, AT(type, field), 0, 0, __VA_ARGS__)

#define FLAG(letter, name, field, ...) PLAIN(bool, CLI_FLAG, letter, name, NULL, field, __VA_ARGS__)
#define SWITCH(name, field, ...)       PLAIN(int, CLI_SWITCH, 0, name, NULL, field, __VA_ARGS__)
#define TEXT(...)                      PLAIN(const char *, CLI_TEXT, __VA_ARGS__)
#define TEXTS(...)                     PLAIN(struct cli_list, CLI_TEXTS, __VA_ARGS__)
#define PATH(...)                      PLAIN(const char *, CLI_FILE, __VA_ARGS__)
#define PATHS(...)                     PLAIN(struct cli_list, CLI_FILES, __VA_ARGS__)
#define SECONDS(name, field, ...) \
	PLAIN(double, CLI_SECONDS, 0, name, "SECONDS", field, __VA_ARGS__)
#define INT(letter, name, metavar, field, min, max, ...) \
	ROW(letter, name, metavar, CLI_INT, AT(int, field), min, max, __VA_ARGS__)
#define SIZE(letter, name, metavar, field, min, ...) \
	ROW(letter, name, metavar, CLI_SIZE, AT(size_t, field), min, 0, __VA_ARGS__)
#define RANKS(name, field, max, ...) \
	ROW(0, name, "RANKS", CLI_RANKS, AT(struct cli_ranks, field), 0, max, __VA_ARGS__)
#define WORD(letter, name, field, first, list, ...) \
	ROW(letter, name, NULL, CLI_WORD, AT(int, field), first, 0, __VA_ARGS__, .words = list)
#define COLLECTIVE(type, name, field, ...) \
	ROW(0, name, "COLLECTIVE", CLI_WORD, AT(type, field), 0, 0, __VA_ARGS__, \
	    .names = coll_name)
#define CALL(letter, name, metavar, field, function, ...) \
	ROW(letter, name, metavar, CLI_CALL, offsetof(OPTIONS, field), 0, 0, __VA_ARGS__, \
	    .take = function)
#define PROGRAM(field, ...) \
	PLAIN(char **, CLI_PROGRAM, 0, NULL, "[--] PROGRAM [ARGUMENTS...]", field, __VA_ARGS__)
#define GROUP(list, field) { .kind = CLI_GROUP, .group = list, .offset = offsetof(OPTIONS, field) }
#define JSON(field)        FLAG(0, "json", field, "print JSON: one object, or one on each line")
#define COLOR(field)       WORD(0, "color", field, 0, WORDS("auto", "always", "never"), "colours (auto)")
#define END                { .kind = CLI_END }
/* clang-format on */

#define WORDS(...)                \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}

#define RANKS_HELP "ranks to start here; without it this is a rank of a launcher"
#define LAUNCHED                                                                          \
	"Without -n this process is a rank of the job that mpirun, srun or torchrun has " \
	"started.\n"

/* -- perf ----------------------------------------------------------------------------- */

#define OPTIONS struct perf_options
static const struct cli_option perf[] = {
	COLLECTIVE(tutti_collective, NULL, coll,
		   "collective: all_reduce, broadcast, all_gather and so on"),
	INT('n', "nranks", "RANKS", nranks, 1, RANKS_MOST, RANKS_HELP),
	SIZE('b', "minbytes", "SIZE", min_bytes, 1, "smallest size (8)"),
	SIZE('e', "maxbytes", "SIZE", max_bytes, 1, "largest size (64M)"),
	SIZE('f', "stepfactor", "FACTOR", factor, 2,
	     "each size is this many times the one before (2)"),
	CALL('d', "datatype", "TYPE", types, perf_take_type, "float32 and so on, or all (float32)",
	     .names = perf_type_name),
	CALL('o', "op", "OPERATION", ops, perf_take_op,
	     "sum, avg, max, band and so on, or all (sum)", .names = perf_op_name),
	INT('r', "root", "RANK", root, 0, RANKS_MOST, "root of broadcast, reduce and so on (0)"),
	RANKS("from", from, RANKS_MOST, "source ranks of a handoff: 0-3, say (the first half)"),
	RANKS("to", to, RANKS_MOST, "its target ranks (the second half)"),
	WORD(0, "sharded", sharded, 1, WORDS("from", "to", "both"),
	     "each rank of that side holds a part"),
	INT('w', "warmup_iters", "COUNT", warmup, 0, INT_MAX,
	    "calls before those that are timed (5)"),
	INT('i', "iters", "COUNT", iters, 1, INT_MAX,
	    "calls that are timed (as many as take 30 ms)"),
	WORD('c', "check", check, 0, WORDS("0", "1"), "compare every element of the results (1)"),
	TEXT(0, "transport", "LIST", transport, "auto, or a list like shm,tcp"),
	TEXT(0, "algorithm", "NAME", algorithm, "run this one; 'tutti show COLLECTIVE' lists them"),
	WORD(0, "buffers", registered, 0, WORDS("plain", "registered"),
	     "memory of malloc, or memory that all ranks can address (plain)"),
	FLAG(0, "reproducible", reproducible,
	     "reductions give the same bits however they are carried out"),
	FLAG(0, "threads", threads, "the ranks are threads of one process", .needs = "nranks"),
	FLAG('v', "verbose", verbose, "print the plan in use, and the algorithm of each line"),
	JSON(json),
	END,
};
#undef OPTIONS

static const struct perf_options perf_defaults = {
	.min_bytes = 8,
	.max_bytes = (size_t)64 << 20,
	.factor = 2,
	.types = { { TUTTI_FLOAT32 }, 1 },
	.root = -1,
	.warmup = 5,
	.check = 1,
};

static const char perf_notes[] =
	"Collectives: all_reduce broadcast reduce all_gather reduce_scatter barrier send_recv "
	"handoff\n"
	"all_to_all gather scatter all_to_all_v gather_v scatter_v all_gather_v reduce_scatter_v.\n"
	"Sizes are the bytes of the larger buffer of a rank and take K, M, G; the output is that "
	"of\nnccl-tests. A time is the average of calls back to back, on the slowest rank.\n"
	"send_recv sends to the next rank and receives from the previous one.\n" LAUNCHED;

/* -- ping ----------------------------------------------------------------------------- */

#define OPTIONS struct ping_options
static const struct cli_option ping[] = {
	INT('n', "nranks", "RANKS", nranks, 2, RANKS_MOST, RANKS_HELP),
	WORD(0, "ranks", whom, PING_HOSTS, WORDS("hosts", "all"),
	     "one rank of each host, or every two ranks (hosts; on one host: all)"),
	CALL(0, "peer", "A,B", peer, ping_take_peer, "measure only between these two ranks"),
	SECONDS("seconds", ping.seconds, "time for each lane, and for all lanes together (0.3)"),
	SIZE(0, "bytes", "SIZE", ping.bytes, 1,
	     "send at most this in one direction of one measurement"),
	SECONDS("reach", ping.reach,
		"how long to try before two ranks count as not connected (10)"),
	TEXT(0, "transport", "LIST", transport, "auto, or a list like shm,tcp"),
	JSON(json),
	END,
};
#undef OPTIONS

static const struct ping_options ping_defaults = { .ping = TUTTI_PING_OPTIONS_INIT,
						   .peer = { -1, -1 } };

static const char ping_notes[] =
	"Rates are GB/s of payload from one rank's memory to the other's, over the lanes and "
	"messages\nthat collectives use; round trips are of 8 bytes. No host takes part in two "
	"measurements at a\ntime. --json prints an object for each pair, and one for what a "
	"comparison of the pairs finds.\n"
	"Exit code 1: something is wrong; what is only remarkable is printed and does not "
	"count.\n" LAUNCHED;

/* -- run ------------------------------------------------------------------------------ */

#define OPTIONS struct run_options
static const struct cli_option run[] = {
	PROGRAM(job.program, "program of the ranks", .is_optional = true),
	INT('n', "nranks", "RANKS", job.nranks, 1, 1 << 16, "how many processes to start"),
	TEXTS(0, "hosts", "HOST[:RANKS],...", hosts, "start the ranks on these hosts"),
	PATHS(0, "hostfile", "FILE", hostfiles,
	      "the same from a file: lines of HOST[:RANKS] or HOST slots=RANKS"),
	TEXT(0, "rsh", "COMMAND", shell, "how to reach a host (" RUN_SHELL ")",
	     .needs = "hosts hostfile"),
	INT(0, "port", "PORT", port, 1, 65535,
	    "where rank 0 listens on the first host (a free one)", .needs = "hosts hostfile"),
	FLAG(0, "tag", job.tag, "print [RANK] in front of every line of output"),
	FLAG(0, "no-bind", job.no_bind, "do not bind each rank to its share of the cores"),
	FLAG(0, "keep-going", job.keep_going, "a rank that fails does not end the others"),
	FLAG(0, "shared-malloc", job.shared_malloc,
	     "malloc() takes large allocations from memory that all ranks of a host address"),
	INT(0, "gpus", "N", job.gpus, 1, 64,
	    "give each rank N devices of CUDA, made of host memory, and NCCL"),
	FLAG(0, "json", job.json, "print how it ended as JSON, after the output of the ranks"),
	FLAG(0, "agent", is_agent, "read the job from standard input: how --hosts starts ranks"),
	END,
};
#undef OPTIONS

static const struct run_options run_defaults = { .shell = RUN_SHELL };

static const char run_notes[] =
	"Every rank gets TUTTI_RANK, TUTTI_NRANKS and TUTTI_COMM_FILE, from which\n"
	"tutti_comm_init_env() makes the communicator, and TUTTI_PTRACER, the process of\n"
	"'tutti run', so that ranks may copy from each other. Rank 0 reads its standard input.\n"
	"Where there are as many cores as ranks, each rank gets its share of them; where\n"
	"there are 2, 3... times as many ranks, neighbours share a core.\n"
	"If one rank fails, all are ended, and 'tutti run' ends with the exit code of that\n"
	"rank, or with 128 + its signal. With --keep-going the others go on, for programs that\n"
	"shrink their communicator and do without it. The exit code is then the first one\n"
	"other than 0 that a rank ended with; ranks that were killed count only if none ended\n"
	"with 0.\n"
	"With --shared-malloc a preloaded library has malloc() take allocations of at least\n"
	"TUTTI_SHARED_MALLOC_LEAST bytes from memory that all ranks of the host address, so\n"
	"that collectives on them move each byte once. fork() copies it. For programs that use\n"
	"libtutti.so: it does nothing for those that are linked to libtutti.a.\n"
	"With --gpus preloaded libraries are CUDA's runtime and driver and NCCL for programs of\n"
	"them: the N devices of each process are memory of this host, and collectives are "
	"Tutti's.\nThey have the PCI bus ids of the GPUs in TUTTI_TOPO_FILE, if that is set.\n"
	"A kernel of a program is an error that names it. Without -n one process is started.\n"
	"The ranks meet in a folder below TMPDIR, /tmp or /dev/shm.\n"
	"126: the program cannot be run, 127: it was not found.\n"
	"\n"
	"With --hosts or --hostfile, ssh starts this program, which must have the same path\n"
	"there, on each host, and it starts the ranks, in the same folder as here, with our\n"
	"TUTTI_ variables. Ranks are dealt out to the hosts in their order, evenly, or as many\n"
	"to each as it says; they meet at the name of the first host, so all of them must know\n"
	"it by that name. Each gets TUTTI_COMM_ID and, over the remote shell's standard\n"
	"input, TUTTI_COMM_SECRET; its own standard input is empty. Where a remote shell\n"
	"ends, so do the ranks there, and with them all others.\n";

/* -- show ----------------------------------------------------------------------------- */

#define OPTIONS struct show_options
static const struct cli_option show[] = {
	COLLECTIVE(int, NULL, collective, "collective: all_reduce and so on", .is_optional = true),
	TEXT(0, "algorithm", "NAME", algorithm,
	     "the one to print; without it their names are listed"),
	INT('n', "nranks", "RANKS", nranks, 1, INT_MAX, "number of ranks"),
	TEXT(0, "hosts", "LIST", hosts, "number of ranks on each host: 4,4,2"),
	INT('r', "root", "RANK", root, 0, INT_MAX, "root of broadcast, reduce and so on (0)",
	    .needs = "algorithm"),
	INT(0, "rank", "RANK", rank, 0, INT_MAX, "print only the program of this rank",
	    .needs = "algorithm"),
	PATH(0, "check", "FILE", check, "prove the algorithm in FILE (- for standard input)",
	     .excludes = "COLLECTIVE algorithm"),
	SIZE(0, "bytes", "SIZE", nbytes, 0,
	     "size of the vector for the bytes and the time that it prints (1M)", .needs = "check"),
	JSON(json),
	END,
};
#undef OPTIONS

static const struct show_options show_defaults = { .collective = -1,
						   .rank = -1,
						   .nbytes = (size_t)1 << 20 };

static const char show_notes[] =
	"What 'show' prints as text for all ranks, 'show --check' reads, and XML as MSCCL's tools\n"
	"write it: the files that TUTTI_ALGO_FILE takes.\n";

/* -- topo, paths ---------------------------------------------------------------------- */

#define GPUS_HELP "only these GPUs: 0,2,5, 0-3, HOST/0 or bus ids"
#define NCCL_HELP "use NCCL's figures for the speed of links"
#define ALL_HELP  "show all PCI functions, not only those that communicate"

#define OPTIONS struct topo_source
static const struct cli_option topo_source[] = {
	PATH(0, "xml", "FILE", config.xml_file, "a topology file"),
	PATH(0, "sysfs", "DIR", config.sysfs_root, "a captured machine: its top folder, or a .tar"),
	TEXT(0, "gpus", "LIST", config.gpus, GPUS_HELP),
	SWITCH("detect", config.detect,
	       "detect this machine; what the file states takes precedence"),
	SWITCH("all", config.all, ALL_HELP),
	SWITCH("measure", config.measure, "measure the memory of each NUMA node"),
	SWITCH("nccl", config.nccl_model, NCCL_HELP),
	COLOR(color),
	JSON(json),
	END,
};
#undef OPTIONS

#define OPTIONS struct topo_options
static const struct cli_option topo[] = {
	GROUP(topo_source, source),
	WORD(0, "format", format, 0, WORDS("tree", "xml", "json", "dot", "svg"),
	     "what is printed (tree)", .excludes = "json"),
	PATH('o', "output", "FILE", output, "write to this file"),
	END,
};
#undef OPTIONS

#define OPTIONS struct topo_diff_options
static const struct cli_option topo_diff[] = {
	PATH(0, NULL, "A", paths[0], "machine: a topology file, a captured machine or its .tar"),
	PATH(0, NULL, "B", paths[1], "other machine"),
	TEXT(0, "gpus", "LIST", source.config.gpus, GPUS_HELP),
	SWITCH("all", source.config.all, ALL_HELP),
	SWITCH("nccl", source.config.nccl_model, NCCL_HELP),
	JSON(source.json),
	END,
};
#undef OPTIONS

#define OPTIONS struct topo_gather_options
static const struct cli_option topo_gather[] = {
	PATH('o', "output", "FILE", file, "the file to write (" TOPO_GATHER_FILE ")"),
	JSON(json),
	END,
};
#undef OPTIONS

#define OPTIONS struct topo_merge_options
static const struct cli_option topo_merge[] = {
	PATHS(0, NULL, "[NAME=]FILE[:COUNT]", hosts, "hosts: topology files or captured machines"),
	PATH(0, "rails", "FILE", rails, "lines of HOST NIC RAIL [GROUP]"),
	JSON(json),
	END,
};
#undef OPTIONS

static const struct topo_source topo_source_defaults = TOPO_SOURCE_INIT;
static const struct topo_options topo_defaults = { .source = TOPO_SOURCE_INIT };
static const struct topo_diff_options topo_diff_defaults = { .source = TOPO_SOURCE_INIT };
static const struct topo_gather_options topo_gather_defaults = { .file = TOPO_GATHER_FILE };
static const struct topo_merge_options topo_merge_defaults = { 0 };

#define THIS_MACHINE \
	"Without a file or folder: this machine, as TUTTI_TOPO_FILE and TUTTI_SYSFS_ROOT say.\n"

static const char topo_diff_notes[] =
	"/ is this machine. Bus ids and names may differ: what counts is how things are wired.\n";

static const char topo_gather_notes[] =
	"For a bug report, or to look at elsewhere: 'tutti topo --sysfs FILE.tar.gz'.\n"
	"\n"
	"In it: CPUs and NUMA nodes, PCI functions with the first 256 bytes of their\n"
	"configuration, names, types and states of network interfaces, RDMA devices with\n"
	"their GUIDs, versions of kernel and drivers, the model of the mainboard, and the\n"
	"topology as it is detected here. Not in it: serial numbers, addresses of\n"
	"interfaces, the name of the host.\n";

static const char topo_merge_notes[] =
	"FILE is a topology file or the folder of a captured machine. It describes the host NAME\n"
	"(the file's name), or with :COUNT the hosts NAME0, NAME1 and so on (NAME-0, NAME-1 if\n"
	"NAME ends with a digit). In the file of rails HOST may hold * and ?, RAIL is a number\n"
	"or -, and # begins a comment; of several lines for a NIC the last counts.\n";

/* -- plan, tune ----------------------------------------------------------------------- */

#define OPTIONS struct plan_source
static const struct cli_option plan_machines[] = {
	PATHS(0, "xml", "FILE[:N]", xml, "a node (N nodes) wired as this file says; repeatable",
	      .excludes = "sysfs"),
	PATH(0, "sysfs", "DIR", topo.config.sysfs_root,
	     "nodes like a captured machine, or its .tar"),
	TEXT(0, "gpus", "LIST", topo.config.gpus, GPUS_HELP),
	SWITCH("nccl", topo.config.nccl_model, NCCL_HELP),
	INT(0, "nodes", "N", nodes, 1, PLAN_MOST_NODES, "number of such nodes (1)"),
	INT(0, "ranks", "R", config.ranks_per_node, 1, 65536,
	    "ranks on each node (one for each GPU, or else each NUMA node)"),
	TEXT(0, "order", "LIST", order, "node of each rank: 0,1,0,1, block or cyclic",
	     .excludes = "hostfile"),
	PATH(0, "hostfile", "FILE", hostfile, "nodes as 'NAME slots=N switch=S' lines"),
	END,
};

static const struct cli_option plan_search[] = {
	TEXT(0, "pattern", "LIST", config.patterns,
	     "plan these: ring,tree,balanced-tree,split-tree,nvls,collnet-..."),
	WORD(0, "cross-nic", config.cross_nic, -1, WORDS("auto", "0", "1", "2"),
	     "rings leave by the NIC they came in by: 0; by any: 1; mirrored: 2"),
	CALL(0, "channels", "MIN:MAX", config, plan_take_channels,
	     "at least MIN and at most MAX channels"),
	SWITCH("both-ways", config.both_ways, "trees load links in both directions"),
	COLOR(topo.color),
	END,
};
#undef OPTIONS

#define OPTIONS struct plan_options
static const struct cli_option plan[] = {
	GROUP(plan_machines, source),
	GROUP(plan_search, source),
	FLAG(0, "handoff", handoff.asked, "plan a handoff: one vector from ranks to ranks",
	     .excludes = "plan compare"),
	RANKS("from", handoff.from, PLAN_MOST_RANKS, "who holds it: 0-7,9 (all of the first node)",
	      .needs = "handoff"),
	RANKS("to", handoff.to, PLAN_MOST_RANKS, "who gets it (all of the other nodes)",
	      .needs = "handoff"),
	WORD(0, "sharded", handoff.sharded, 1, WORDS("from", "to", "both"),
	     "each rank of that side has one part of the vector", .needs = "handoff"),
	SIZE(0, "bytes", "SIZE", handoff.nbytes, 1,
	     "predict the time for a vector of this size (64M)", .needs = "handoff"),
	FLAG(0, "explain", explain, "say what limits it, and what would help"),
	PATH(0, "plan", "FILE", plan,
	     "take this plan, or graph file of NCCL, in place of a search"),
	PATH(0, "compare", "FILE", compare,
	     "show the channels of this plan beside those that are found"),
	WORD(0, "format", format, 0, WORDS("table", "json", "dot", "svg", "nccl"),
	     "what is printed (table)", .excludes = "json"),
	PATH('o', "output", "FILE", output, "write to this file"),
	JSON(source.topo.json),
	END,
};
#undef OPTIONS

#define OPTIONS struct plan_file_options
#define PLAN_FILE_OPTIONS                                      \
	GROUP(plan_machines, source),                          \
		SWITCH("both-ways", source.config.both_ways,   \
		       "trees load links in both directions"), \
		COLOR(source.topo.color), JSON(source.topo.json)
static const struct cli_option plan_file[] = {
	PATH(0, NULL, "FILE", files[0], "file: a plan, or a graph file of NCCL"),
	PLAN_FILE_OPTIONS,
	END,
};

static const struct cli_option plan_diff[] = {
	PATH(0, NULL, "A", files[0], "plan: as --json prints it, or a graph file of NCCL"),
	PATH(0, NULL, "B", files[1], "other plan"),
	PLAN_FILE_OPTIONS,
	END,
};
#undef OPTIONS

#define OPTIONS struct tune_options
static const struct cli_option tune[] = {
	INT('n', "nranks", "RANKS", nranks, 2, RANKS_MOST,
	    "ranks to measure with (each number that makes a difference here)",
	    .excludes = "table file"),
	SIZE('e', "maxbytes", "SIZE", most, 8, "largest vector that is measured (16M)",
	     .excludes = "table file"),
	PATH('o', "out", "FILE", out,
	     "write what was measured to this file (-: the output) and keep nothing",
	     .excludes = "table file check"),
	FLAG(0, "busy", busy, "keep the result even if other programs ran meanwhile",
	     .excludes = "table file check"),
	FLAG(0, "check", check,
	     "measure the algorithms that are chosen, and say which choice is wrong",
	     .excludes = "table file"),
	FLAG(0, "table", table, "print the predicted times, and which algorithm is chosen",
	     .excludes = "file"),
	FLAG(0, "file", file, "print constants and choices as a file that can be edited"),
	COLLECTIVE(int, "collective", config.collective, "only this collective",
		   .needs = "table file"),
	SWITCH("host", config.host_memory, "for data in host memory, even if there are GPUs",
	       .needs = "table file"),
	PATH(0, "tune", "FILE", config.tune_file,
	     "use the constants and choices of this file, not those in force",
	     .needs = "table file"),
	PATH(0, "plan", "FILE", plan, "take this plan in place of a search", .needs = "table file"),
	{ .kind = CLI_GROUP,
	  .group = plan_machines,
	  .offset = offsetof(OPTIONS, source),
	  .needs = "table file" },
	JSON(source.topo.json),
	END,
};
#undef OPTIONS

static const struct plan_options plan_defaults = { .source = PLAN_SOURCE_INIT,
						   .handoff = PLAN_HANDOFF_INIT };
static const struct plan_file_options plan_file_defaults = { .source = PLAN_SOURCE_INIT };
static const struct tune_options tune_defaults = { .source = PLAN_SOURCE_INIT,
						   .config = TUTTI_TUNE_CONFIG_INIT };

static const char plan_notes[] =
	THIS_MACHINE "With --order or --hostfile: what that order of ranks costs a library that "
		     "keeps it.\ndocs/planning.md has the rest, and docs/handoff.md what is about "
		     "--handoff.\n";

static const char plan_file_notes[] =
	"A plan is as --json prints it. A graph file of NCCL needs its machine (--xml) and, if it\n"
	"names NICs, --nodes 2 or more.\n";

static const char tune_notes[] =
	"Without --check, --table and --file it measures for some seconds, in which nothing else\n"
	"should run, and keeps the result in $XDG_CACHE_HOME/tutti or ~/.cache/tutti, where the\n"
	"library looks for it. The library uses it on this machine and with this version only,\n"
	"and if all ranks have the same one. TUTTI_TUNE_FILE takes precedence over it; \"none\"\n"
	"turns both off. If times change from round to round nothing is kept, unless --busy says\n"
	"so. The times of --table are predictions from the plan and from the constants that\n"
	"--file lists with their sources; on one host the choices were measured. TUTTI_ALGO\n"
	"forces an algorithm.\n"
	"The options from --collective to --hostfile go with --table or --file.\n";

/* -- env, version, completion ----------------------------------------------------------- */

#define OPTIONS struct doctor_options
static const struct cli_option doctor[] = { JSON(json), COLOR(color), END };
#undef OPTIONS

static const struct doctor_options doctor_defaults = { 0 };
static const char doctor_notes[] =
	"It looks at CUDA's driver, Tutti's kernels, each device and which of them reach each\n"
	"other's memory, and at settings of the system that are in the way. Where something is\n"
	"missing it says what follows and what to do. Without a GPU nothing is missing: Tutti\n"
	"uses host memory. TUTTI_CUDA_LIB, TUTTI_NVML_LIB and TUTTI_SYSFS_ROOT name what is\n"
	"looked at in place of this machine's.\n";

#define OPTIONS struct env_options
static const struct cli_option env[] = {
	JSON(json),
	FLAG(0, "markdown", markdown, "print the table of docs/env.md", .excludes = "json"),
	END,
};
#undef OPTIONS

#define OPTIONS struct version_options
static const struct cli_option version[] = { JSON(json), END };
#undef OPTIONS

#define OPTIONS struct completion_options
static const struct cli_option completion[] = {
	WORD(0, NULL, shell, 0, WORDS("bash", "zsh", "fish"), "shell that reads it"),
	END,
};
#undef OPTIONS

static const struct env_options env_defaults = { 0 };
static const struct version_options version_defaults = { 0 };
static const struct completion_options completion_defaults = { 0 };

static const char completion_notes[] =
	"bash: source <(tutti completion bash); zsh: source <(tutti completion zsh);\n"
	"fish: tutti completion fish | source. `make install` puts each where its shell looks.\n";

static int run_completion(void *options)
{
	return completion_run(commands, options);
}

#define COMMAND(verb, function, text, table, initial, extra, ...)                          \
	{                                                                                  \
		.name = verb, .run = function, .summary = text, .options = table,          \
		.defaults = &initial, .size = sizeof(initial), .notes = extra, __VA_ARGS__ \
	}

const struct cli_command commands[] = {
	COMMAND("perf", perf_run, "how fast a collective is, and whether its results are right",
		perf, perf_defaults, perf_notes),
	COMMAND("ping", ping_run,
		"what each lane between the nodes carries, and what is wrong with it", ping,
		ping_defaults, ping_notes),
	COMMAND("run", run_run, "start the ranks of a program on this machine, or on several", run,
		run_defaults, run_notes),
	COMMAND("show", show_run, "the steps of an algorithm, or the proof of one in a file", show,
		show_defaults, show_notes),
	COMMAND("topo", topo_run, "how a machine is wired, and what is wrong with it", topo,
		topo_defaults, THIS_MACHINE),
	COMMAND("topo lint", topo_lint_run,
		"what is wrong with a topology, what it costs and what to do", topo_source,
		topo_source_defaults,
		"Errors and warnings are findings; notes say what had to be assumed.\n"),
	COMMAND("topo diff", topo_diff_run, "what differs between two machines, in words",
		topo_diff, topo_diff_defaults, topo_diff_notes),
	COMMAND("topo gather", topo_gather_run, "what describes this machine, in one .tar.gz",
		topo_gather, topo_gather_defaults, topo_gather_notes),
	COMMAND("topo merge", topo_merge_run,
		"many hosts as one cluster: kinds, rails, domains, who differs", topo_merge,
		topo_merge_defaults, topo_merge_notes),
	COMMAND("paths", paths_run, "the path between each pair of GPUs and NICs, and its GB/s",
		topo_source, topo_source_defaults,
		"Types are those of `nvidia-smi topo -m`. A mark says that traffic does otherwise "
		"than\nthe wires: TUTTI_P2P_LEVEL, TUTTI_NET_GDR_LEVEL and their kin decide "
		"that.\n"),
	COMMAND("plan", plan_run, "which channels a job would use over its machines, and why", plan,
		plan_defaults, plan_notes),
	COMMAND("plan diff", plan_diff_run, "what differs between two plans, in words", plan_diff,
		plan_file_defaults, plan_file_notes),
	COMMAND("plan check", plan_check_run,
		"whether a file is a plan, and the machines can carry it", plan_file,
		plan_file_defaults, plan_file_notes),
	COMMAND("plan read", plan_read_run, "a plan from a file, printed again", plan_file,
		plan_file_defaults, plan_file_notes),
	COMMAND("tune", tune_run,
		"measure this machine; how long each algorithm takes, and which is taken", tune,
		tune_defaults, tune_notes),
	COMMAND("doctor", doctor_run,
		"what this machine has for GPUs, what is missing for what, and what to do", doctor,
		doctor_defaults, doctor_notes),
	COMMAND("env", env_run, "the variables of the environment, and what is in force", env,
		env_defaults,
		"A variable TUTTI_... that does not exist is reported on stderr with the nearest\n"
		"name that does.\n"),
	COMMAND("version", version_run, "the version of the library", version, version_defaults,
		NULL),
	COMMAND("completion", run_completion, "a script that completes commands of tutti",
		completion, completion_defaults, completion_notes),
	{ 0 },
};
