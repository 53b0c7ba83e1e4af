/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements between two ranks as one JSON object, for rank 0 and for --json. */
#include "ping.h"

static json_t *measure_json(tutti_ping_t ping, int lane)
{
	struct tutti_ping_measure m = TUTTI_PING_MEASURE_INIT;

	if (tutti_ping_get_measure(ping, lane, &m) != TUTTI_OK)
		return NULL;
	if (!m.measured)
		return json_pack("{sb}", "measured", 0);
	return json_pack("{sb si sf sf sf sf sf sf sf sI sI sf sf}", "measured", 1, "round_trips",
			 m.round_trips, "rtt_least_us", m.rtt_least_us, "rtt_us", m.rtt_us,
			 "rtt_p99_us", m.rtt_p99_us, "ab_gbps", m.ab_gbps, "ba_gbps", m.ba_gbps,
			 "both_ab_gbps", m.both_ab_gbps, "both_ba_gbps", m.both_ba_gbps, "a_resent",
			 (json_int_t)m.a_resent, "b_resent", (json_int_t)m.b_resent, "a_starved",
			 m.a_starved, "b_starved", m.b_starved);
}

/* JSON is UTF-8; names of interfaces may be anything. */
static void clean_text(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x80)
			*text = '?';
}

static void clean(struct tutti_lane *lane)
{
	clean_text(lane->local_nic);
	clean_text(lane->remote_nic);
	clean_text(lane->trouble);
}

/* Both ends describe the same thing; one may not know it. */
static const char *either(const char *a, const char *b)
{
	return a[0] ? a : b;
}

static json_t *lane_json(tutti_ping_t ping, int lane)
{
	struct tutti_lane a = TUTTI_LANE_INIT, b = TUTTI_LANE_INIT;
	json_t *measure, *object;

	if (tutti_ping_get_lane(ping, lane, 0, &a) || tutti_ping_get_lane(ping, lane, 1, &b))
		return NULL;
	clean(&a);
	clean(&b);
	measure = measure_json(ping, lane);
	object = json_pack("{si sb ss ss ss ss sI sI sI sI ss ss}", "lane", lane, "up",
			   a.up && b.up, "a_nic", either(a.local_nic, b.remote_nic), "a_address",
			   either(a.local_address, b.remote_address), "b_nic",
			   either(b.local_nic, a.remote_nic), "b_address",
			   either(b.local_address, a.remote_address), "a_mbps",
			   (json_int_t)(a.local_mbps ? a.local_mbps : b.remote_mbps), "b_mbps",
			   (json_int_t)(b.local_mbps ? b.local_mbps : a.remote_mbps), "a_mtu",
			   (json_int_t)a.local_mtu, "b_mtu", (json_int_t)b.local_mtu, "a_trouble",
			   a.trouble, "b_trouble", b.trouble);
	if (!object || !measure || json_object_update_new(object, measure)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *lanes_json(tutti_ping_t ping)
{
	json_t *const lanes = json_array();

	for (int i = 0; lanes && i < tutti_ping_lane_count(ping); i++)
		if (json_array_append_new(lanes, lane_json(ping, i))) {
			json_decref(lanes);
			return NULL;
		}
	return lanes;
}

static json_t *findings_json(tutti_ping_t ping)
{
	struct tutti_ping_finding f = TUTTI_PING_FINDING_INIT;
	json_t *const findings = json_array();

	for (int i = 0; findings && i < tutti_ping_finding_count(ping); i++)
		if (tutti_ping_get_finding(ping, i, &f) ||
		    json_array_append_new(findings,
					  json_pack("{ss ss si ss ss}", "rule", f.rule, "severity",
						    f.severity, "lane", f.lane, "what", f.what,
						    "remedy", f.remedy))) {
			json_decref(findings);
			return NULL;
		}
	return findings;
}

json_t *ping_json(const struct ping_pair *pair, const struct ping_place *places,
		  const char *transport, tutti_ping_t ping)
{
	return json_pack("{si si ss ss ss so so so}", "a", pair->a, "b", pair->b, "host_a",
			 places[pair->a].name, "host_b", places[pair->b].name, "transport",
			 transport, "lanes", lanes_json(ping), "together", measure_json(ping, -1),
			 "findings", findings_json(ping));
}
