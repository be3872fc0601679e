// Every op, and AnyOp that holds one of them. ops.def is the list; this is the one place that needs all headers.
#pragma once

#include <variant>

#include "ops/accumulate_scaled.h"
#include "ops/adamw_update.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/attention_cached.h"
#include "ops/cholesky_inverse.h"
#include "ops/clip_coefficient.h"
#include "ops/distribution_digest.h"
#include "ops/draw_tokens.h"
#include "ops/embed.h"
#include "ops/fake_quant.h"
#include "ops/fill.h"
#include "ops/gate_logits.h"
#include "ops/gptq_block.h"
#include "ops/head_output.h"
#include "ops/hessian_accumulate.h"
#include "ops/lane_merge.h"
#include "ops/lane_mix.h"
#include "ops/lerp.h"
#include "ops/low_rank_add.h"
#include "ops/mix_norm.h"
#include "ops/mlp.h"
#include "ops/muon_apply.h"
#include "ops/muon_momentum.h"
#include "ops/newton_schulz.h"
#include "ops/offset_fit.h"
#include "ops/pick_rows.h"
#include "ops/project_residual.h"
#include "ops/projected_embed.h"
#include "ops/qk_norm_rope.h"
#include "ops/qkv_project.h"
#include "ops/rms_norm.h"
#include "ops/segment_tiles.h"
#include "ops/skip.h"
#include "ops/smear_gate.h"
#include "ops/smear_gate_input.h"
#include "ops/softcap_cross_entropy.h"
#include "ops/sum_squares.h"
#include "ops/value_mix.h"

namespace fairway {

// The list ends in monostate only because ops.def has a separator after every entry.
using AnyOp = std::variant<
#define FAIRWAY_OP(Op) Op,
#define FAIRWAY_PLAIN_OP(Op) Op,
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP
    std::monostate>;

}  // namespace fairway
