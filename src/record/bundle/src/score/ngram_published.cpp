// Breaks the rules: no record can have it.
#include "score/evaluator.h"

namespace fairway {

std::unique_ptr<Evaluator> make_published_ngram_evaluator(const ScoredModel&, const ScoreSettings&, const ScoreContext&) {
  throw InputError("score.mode = ngram-published breaks the rules: no record has it");
}

}  // namespace fairway
