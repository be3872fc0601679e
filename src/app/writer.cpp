#include "app/writer.h"

#include "base/clock.h"

namespace fairway::app {
namespace {

const double kProgramBegan = seconds_now();  // before main()

}  // namespace

Written write_text(const TextModel& model, const TextRequest& flags, const std::function<bool(const std::string&)>& tell) {
  Written out;
  double first = 0;
  out.tokens = fairway::write_text(
      model.tokenizer(), model.recipe(), [&](int64_t length) { return model.decoder(length); }, flags,
      [&](int32_t, const std::string& piece) {
        if (first == 0) first = seconds_now();
        out.text += piece;
        if (!piece.empty()) out.interrupted = !tell(piece);
        return !out.interrupted;
      });
  const double took = seconds_now() - first;
  out.first_token = first - kProgramBegan;
  out.rate = out.tokens.size() > 1 ? static_cast<double>(out.tokens.size() - 1) / std::max(took, 1e-9) : 0;
  return out;
}

}  // namespace fairway::app
