// No published recipe ends in this mode; records leave it out for its bytes.
#include "score/evaluator.h"

namespace fairway {

std::unique_ptr<Evaluator> make_slot_evaluator(const ScoredModel&, const ScoreSettings&, const ScoreContext&) {
  throw InputError("score.mode = slot: no record has it");
}

}  // namespace fairway
