#include "quant/shared_tensors.h"

#include <cstring>

#include "base/error.h"
#include "comm/share_bytes.h"

namespace fairway {
namespace {

class Writer {
 public:
  template <class T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <class Sequence>
  void sequence(const Sequence& values) {
    number(static_cast<uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  }
  template <class T>
  void operator()(const T& field) {
    if constexpr (requires { field.size(); })
      sequence(field);
    else
      number(field);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  void operator()(T& field) {
    if constexpr (requires { field.size(); }) {
      uint64_t count = 0;
      copy(&count, sizeof(count));
      field.resize(count);
      copy(field.data(), count * sizeof(field[0]));
    } else {
      copy(&field, sizeof(field));
    }
  }

 private:
  void copy(void* to, size_t count) {
    FAIRWAY_ASSERT(count <= bytes_.size(), "a part from another rank is cut short");
    if (count > 0) std::memcpy(to, bytes_.data(), count);
    bytes_.remove_prefix(count);
  }
  std::string_view bytes_;
};

// Both directions go through one list of fields.
template <class Part, class Visitor>
void each_field(Part& part, Visitor& visit) {
  auto& t = part.tensor;
  visit(t.bank), visit(t.slice), visit(t.rows), visit(t.cols), visit(t.coding), visit(t.bits), visit(t.trellis);
  visit(t.q), visit(t.scale), visit(t.columns), visit(t.halves), visit(t.singles);
  auto& c = t.correction;
  visit(c.rank), visit(c.a), visit(c.a_scale), visit(c.b), visit(c.b_scale);
  auto& r = part.report;
  visit(r.name), visit(r.coding), visit(r.bits), visit(r.scale_rule), visit(r.mean_square), visit(r.loss), visit(r.counted),
      visit(r.entropy);
  visit(r.weighted), visit(r.gptq), visit(r.fallback), visit(r.damping_retries), visit(r.corrected);
}

// Tensors of one Hessian have one owner; those without any are dealt out one by one.
std::vector<int> owners_of(std::span<const TensorJob> jobs, int ranks) {
  std::map<std::string, int> by_point;
  std::vector<int> out;
  int next = 0;
  for (const TensorJob& job : jobs) {
    if (job.plan->point.empty()) {
      out.push_back(next++ % ranks);
      continue;
    }
    const auto [at, fresh] = by_point.try_emplace(job.plan->point, next % ranks);
    if (fresh) ++next;
    out.push_back(at->second);
  }
  return out;
}

}  // namespace

std::string to_bytes(const QuantizedPart& part) {
  Writer writer;
  each_field(part, writer);
  return writer.take();
}

QuantizedPart part_from_bytes(std::string_view bytes) {
  QuantizedPart part;
  Reader reader(bytes);
  each_field(part, reader);
  return part;
}

std::vector<QuantizedPart> quantize_tensors(std::span<const TensorJob> jobs, const QuantRecipe& quant, OpRunner& runner,
                                            FactorCache& factors, Communicator& comm) {
  std::vector<std::vector<QuantizedPart>> made(jobs.size());
  const std::vector<int> owners = owners_of(jobs, comm.size());
  for (size_t i = 0; i < jobs.size(); ++i)
    if (owners[i] == comm.rank()) made[i] = quantize_tensor(*jobs[i].plan, jobs[i].settings, quant, runner, factors);
  for (int rank = 0; rank < comm.size() && comm.size() > 1; ++rank) {
    Writer all;
    for (size_t i = 0; i < jobs.size(); ++i)
      for (const QuantizedPart& part : made[i])
        if (owners[i] == rank && rank == comm.rank()) all.sequence(to_bytes(part));
    std::string bytes = all.take();
    share_bytes(comm, bytes, rank);
    if (rank == comm.rank()) continue;
    Reader reader(bytes);
    for (size_t i = 0; i < jobs.size(); ++i) {
      for (size_t n = 0; n < jobs[i].settings.size() && owners[i] == rank; ++n) {
        std::string part;
        reader(part);
        made[i].push_back(part_from_bytes(part));
      }
    }
  }
  std::vector<QuantizedPart> parts;
  for (std::vector<QuantizedPart>& own : made)
    for (QuantizedPart& part : own) parts.push_back(std::move(part));
  return parts;
}

}  // namespace fairway
