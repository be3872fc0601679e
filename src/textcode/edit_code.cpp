#include "textcode/edit_code.h"

#include <bit>

#include "base/error.h"

namespace fairway::textcode {
namespace {

struct EditModels {
  BitModel at_space[2];  // by whether the last edit was
  NumberModel spaces, gap, removed, inserted;
  ByteModel bytes;
};

// The place of the space after `skipped` others from `from` on; the text's size when there are not so many.
size_t space_after(std::string_view read, size_t from, uint64_t skipped) {
  for (size_t at = from;; ++at) {
    at = read.find(' ', at);
    if (at == std::string_view::npos) return read.size();
    if (skipped-- == 0) return at;
  }
}

uint64_t spaces_between(std::string_view read, size_t from, size_t to) {
  uint64_t count = 0;
  for (size_t at = from; at < to; ++at) count += read[at] == ' ' ? 1 : 0;
  return count;
}

[[noreturn]] void fail_edit(const char* what) {
  throw InputError(std::string("its changes ") + what + "; the data is damaged");
}

}  // namespace

void NumberModel::put(RangeEncoder& out, uint64_t value) {
  const int length = std::bit_width(value);
  FAIRWAY_ASSERT(length < kLengths, "a number below 2^48");
  for (int bits = 0; bits <= length && bits + 1 < kLengths; ++bits) longer_[static_cast<size_t>(bits)].put(out, bits < length);
  const int rest = length - 1;  // bits behind the first
  if (rest <= 0) return;
  const int learned = rest < kLearned ? rest : kLearned, plain = rest - learned;
  const auto high = static_cast<uint32_t>(value >> plain & ((1U << learned) - 1));
  high_[static_cast<size_t>(length)].put(out, high, learned);
  for (int bit = plain; bit-- > 0;) out.put({value >> bit & 1, 1}, 2);
}

uint64_t NumberModel::get(RangeDecoder& in) {
  int length = 0;
  while (length + 1 < kLengths && longer_[static_cast<size_t>(length)].get(in)) ++length;
  if (length <= 1) return static_cast<uint64_t>(length);
  const int rest = length - 1, learned = rest < kLearned ? rest : kLearned, plain = rest - learned;
  uint64_t value = uint64_t{1} << learned | high_[static_cast<size_t>(length)].get(in, learned);
  for (int bit = plain; bit-- > 0;) {
    const uint64_t one = in.slot(2);
    in.take({one, 1}, 2);
    value = value << 1 | one;
  }
  return value;
}

void put_edits(RangeEncoder& out, std::span<const TextEdit> edits, std::string_view read) {
  EditModels models;
  NumberModel().put(out, edits.size());
  size_t from = 0;
  bool last = true;
  for (const TextEdit& edit : edits) {
    const bool at_space = edit.at < read.size() && read[edit.at] == ' ';
    models.at_space[last ? 1 : 0].put(out, at_space);
    at_space ? models.spaces.put(out, spaces_between(read, from, edit.at)) : models.gap.put(out, edit.at - from);
    models.removed.put(out, edit.removed);
    models.inserted.put(out, edit.inserted.size());
    uint8_t before = 0;
    for (const char c : edit.inserted) models.bytes.put(out, before, static_cast<uint8_t>(c)), before = static_cast<uint8_t>(c);
    from = edit.at + edit.removed;
    last = at_space;
  }
}

std::vector<TextEdit> get_edits(RangeDecoder& in, std::string_view read, uint64_t most) {
  EditModels models;
  const uint64_t count = NumberModel().get(in);
  std::vector<TextEdit> edits;
  size_t from = 0;
  bool last = true;
  for (uint64_t i = 0; i < count; ++i) {
    const bool at_space = models.at_space[last ? 1 : 0].get(in);
    const uint64_t far = at_space ? models.spaces.get(in) : models.gap.get(in);
    if (!at_space && far > read.size() - from) fail_edit("leave the text");
    const size_t at = at_space ? space_after(read, from, far) : from + far;
    const uint64_t removed = models.removed.get(in), inserted = models.inserted.get(in);
    if (removed > read.size() - at) fail_edit("leave the text");
    if (inserted > most) fail_edit("are longer than the text");
    if (removed == 0 && inserted == 0) fail_edit("change nothing");  // else a short file could list them without end
    TextEdit edit{at, removed, {}};
    uint8_t before = 0;
    for (uint64_t k = 0; k < inserted; ++k) edit.inserted += static_cast<char>(before = models.bytes.get(in, before));
    edits.push_back(std::move(edit));
    most -= inserted;
    from = at + removed;
    last = at_space;
  }
  return edits;
}

double bits_of_edits(std::span<const TextEdit> edits, std::string_view read) {
  if (edits.empty()) return 0;
  RangeEncoder out;
  put_edits(out, edits, read);
  return 8.0 * static_cast<double>(out.finish().size());
}

}  // namespace fairway::textcode
