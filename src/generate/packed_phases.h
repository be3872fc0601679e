// The parts of a token's work that read packed weights or the caches, each for one thread's share of the rows or heads. One row
// of activations. Every tensor is as the op of that name has it.
#pragma once

#include "generate/packed_weights.h"
#include "ops/all_ops.h"

namespace fairway {

struct PhaseShare {
  int rank, threads;
  cpu::DigitVector& digits;  // of this thread

  // This thread's part of `count` things; parts of all threads cover them in order.
  cpu::TileRange of(int64_t count) const { return {count * rank / threads, count * (rank + 1) / threads}; }
};

namespace packed {

struct Qkv {
  const PackedMatrix *q, *k, *v;
};

void embed(const Forward<Embed>& call, const PackedMatrix& table);  // all of it
void projected_embed(const ProjectedEmbed& op, const Forward<ProjectedEmbed>& call, const PhaseShare& share);
void project(const Forward<QkvProject>& call, const Qkv& weights, const PhaseShare& share);
void attend(const AttentionCached& op, const Forward<AttentionCached>& call, const PhaseShare& share);
void project_residual(const Forward<ProjectResidual>& call, const PackedMatrix& weight, const PhaseShare& share);
void mlp_up(const Forward<Mlp>& call, const PackedMatrix& up, const PhaseShare& share);      // fills saved.post
void mlp_down(const Forward<Mlp>& call, const PackedMatrix& down, const PhaseShare& share);  // from all of saved.post
void head(const SoftcapCrossEntropy& op, const Forward<SoftcapCrossEntropy>& call, const PackedMatrix& table,
          const PhaseShare& share);

}  // namespace packed
}  // namespace fairway
