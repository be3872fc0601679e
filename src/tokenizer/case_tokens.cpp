#include "tokenizer/case_tokens.h"

#include <algorithm>

#include "base/error.h"

namespace fairway {

bool declares_case_ops(const Vocabulary& tokenizer) {
  return std::all_of(kCaseOps.begin(), kCaseOps.end(), [&](std::string_view op) {
    const int id = tokenizer.find(op);
    return id >= 0 && tokenizer.piece(id).type == PieceType::user_defined;
  });
}

std::vector<int> encode_text(const Tokenizer& tokenizer, std::string_view text) {
  return declares_case_ops(tokenizer) ? tokenizer.encode(encode_case(text)) : tokenizer.encode(text);
}

CaseTokens::CaseTokens(const Vocabulary& tokenizer) {
  if (!declares_case_ops(tokenizer))
    throw InputError("the tokenizer has no user-defined pieces U+E001 to U+E004, so it cannot be used with case operators");
  for (size_t i = 0; i < kCaseOps.size(); ++i) ops_[i] = tokenizer.find(kCaseOps[i]);
}

std::vector<bool> CaseTokens::counted(std::span<const int> document) const {
  const int escape = ops_[3];
  std::vector<bool> out;
  bool escaped = false;
  for (size_t i = 0; i < document.size(); ++i) {
    const bool op = std::find(ops_.begin(), ops_.end(), document[i]) != ops_.end();
    out.push_back(i > 0 && (!op || escaped));
    escaped = !escaped && document[i] == escape;
  }
  return out;
}

}  // namespace fairway
