// A record is scored by the rules, which this mode breaks.
#include "score/evaluator.h"

namespace fairway {

std::unique_ptr<Evaluator> make_shared_slot_evaluator(const ScoredModel&, const ScoreSettings&, const ScoreContext&) {
  throw InputError("score.mode = slot-published breaks the rules: no record has it");
}

}  // namespace fairway
