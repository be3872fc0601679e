// Tokens as the code of a model's predictions. The stream is cut into windows as plain scoring cuts it: every window begins
// anew, with the token before it as its first input. Windows lie in lanes, each a run of neighbours, which are worked through
// side by side, since one reading of the weights serves all of them. The first window of a lane begins with BOS, because the
// token before it is not known yet when it is decoded.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "textcode/range_coder.h"

namespace fairway::textcode {

// What predicts the next token of every lane. Nothing it tells may depend on the machine.
class TokenPredictor {
 public:
  virtual ~TokenPredictor() = default;
  virtual int64_t lanes() const = 0;
  virtual int64_t context() const = 0;                                // tokens of a window
  virtual void restart() = 0;                                         // every lane is at the beginning of a window
  virtual void step(std::span<const int32_t> tokens) = 0;             // one of each lane
  virtual std::span<const uint32_t> weights(int64_t lane) const = 0;  // of all tokens, none of them 0
  virtual uint64_t total(int64_t lane) const = 0;                     // their sum, below kMostTotal
};

// As few lanes as take no more rounds than `most` would; a function of the text's length and the model alone.
int64_t lanes_for(int64_t tokens, int64_t context, int64_t most);

using TokenProgress = std::function<void(int64_t done, int64_t total)>;

void put_tokens(RangeEncoder& out, std::span<const int> tokens, TokenPredictor& predictor, const TokenProgress& progress);
std::vector<int> get_tokens(RangeDecoder& in, int64_t count, TokenPredictor& predictor, const TokenProgress& progress);

}  // namespace fairway::textcode
