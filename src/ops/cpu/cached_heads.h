// The share of one kv head of one row in AttentionCached, for callers that divide the work themselves.
#pragma once

#include "ops/attention_cached.h"

namespace fairway::cpu {

// `head` counts kv heads of all rows: from 0 to B·K. Heads are independent of each other.
void attend_cached(const AttentionCached& op, const Forward<AttentionCached>& call, int64_t head);

}  // namespace fairway::cpu
