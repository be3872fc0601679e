#include "backends/op_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ops/arguments.h"
#include "ops/cuda/device.h"
#include "ops/cuda/library_time.h"

namespace fairway {
namespace {

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

double backward_flops(const AnyOp& any) {  // over those of forward
  constexpr double kProducts = 2;
  return std::visit(
      []<class Op>(const Op&) {
        if constexpr (requires { Op::kBackwardFlops; }) return Op::kBackwardFlops;
        return kProducts;
      },
      any);
}

// Of the pairs of tokens that a plan counts in attention, the share that packed documents have.
double visible_share(Executor& executor, const Session& session, const Call& call) {
  const auto* op = std::get_if<Attention>(&call.op);
  if (op == nullptr) return 1;
  const int32_t starts = by_name<Attention::InOf>(call.in).segment_start;
  if (session.program().slot_of(starts) == nullptr) return 1;
  const Tensor start = session.recording().bindings.at(session.program().value(starts).slot);
  executor.download(start);
  double pairs = 0;
  for (int64_t m = 0; m < start.numel(); ++m)
    pairs += static_cast<double>(m - start.as<int32_t>()[m]) + 0.5;  // half of itself, as in T/2
  return pairs / (static_cast<double>(start.numel()) * static_cast<double>(op->row_length) / 2);
}

}  // namespace

double traffic_of(const BoundCall& bound) {
  const Call& call = *bound.call;
  std::set<const std::byte*> seen;
  double total = 0;
  const auto count = [&](const Tensor& t) {
    if (t && seen.insert(t.data).second) total += static_cast<double>(t.spec.bytes());
  };
  const Arguments declared = arguments_of(call.op);
  const auto present = [&](size_t i) { return call.in[i] != kNoValue; };
  for (size_t i = 0; i < bound.in.size(); ++i)
    if (!call.backward || !(declared.in[i].is_unread || passes_gradient(declared, i, present))) count(bound.in[i]);
  for (size_t i = 0; i < bound.out.size(); ++i)
    if (!call.backward || declared.out[i].is_reread) count(bound.out[i]);
  for (const auto* list : {&bound.saved, &bound.dout, &bound.din})
    for (const Tensor& t : *list) count(t);
  for (const Tensor& t : bound.din)
    if (t && t.accumulate) total += static_cast<double>(t.spec.bytes());
  return total;
}

double Peaks::share_of(const OpLine& line) const {
  const double arithmetic = flops > 0 ? line.flops / flops : 0, traffic = bytes > 0 ? line.bytes / bytes : 0;
  return rate(std::max(arithmetic, traffic), line.seconds);
}

double peak_bytes_of(const Executor& executor) { return executor.on_device() ? cuda::peak_bytes() : 0; }

std::vector<OpLine> op_table(Executor& executor, Session& session, int repeats) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) session.run_timed(seconds);
  std::map<std::string, OpLine> lines;
  const std::vector<BoundCall>& calls = session.calls();
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = *calls[i].call;
    const std::string name = std::string(op_name(call.op)) + (call.backward ? "'" : "");
    OpLine& line = lines[name];
    line.name = name;
    line.calls += 1;
    line.seconds += seconds[i] / repeats;
    line.flops += call.flops * visible_share(executor, session, call) * (call.backward ? backward_flops(call.op) : 1);
    line.bytes += traffic_of(calls[i]);
    if (executor.on_device())
      line.library_seconds += cuda::library_seconds(executor.queue(), calls[i].call->op, calls[i].call->backward,
                                                    {calls[i].in, calls[i].out, calls[i].saved, calls[i].dout, calls[i].din});
  }
  std::vector<OpLine> out;
  out.reserve(lines.size());
  for (auto& [name, line] : lines) out.push_back(std::move(line));
  std::sort(out.begin(), out.end(), [](const OpLine& a, const OpLine& b) { return a.seconds > b.seconds; });
  return out;
}

std::string print_op_table(const std::vector<OpLine>& lines, double total, const Peaks& peaks) {
  std::string out = fmt::format("{:24} {:>5} {:>10} {:>7} {:>9} {:>8} {:>8} {:>8}\n", "op (' backward)", "calls", "us", "share",
                                "TFLOP/s", "GB/s", "of light", "library");
  const auto shown = [](double value, const char* format) {
    return value > 0 ? fmt::format(fmt::runtime(format), value) : std::string("-");
  };
  for (const OpLine& l : lines) {
    out += fmt::format("{:24} {:5} {:10.1f} {:6.1f}% {:>9} {:>8} {:>8} {:>8}\n", l.name, l.calls, l.seconds * 1e6,
                       100 * rate(l.seconds, total), shown(rate(l.flops, l.seconds) * 1e-12, "{:.4g}"),
                       shown(rate(l.bytes, l.seconds) * 1e-9, "{:.4g}"), shown(100 * peaks.share_of(l), "{:.1f}%"),
                       shown(rate(l.library_seconds, l.seconds), "{:.2f}x"));
  }
  return out;
}

std::string op_table_json(const std::vector<OpLine>& lines, const Peaks& peaks) {
  const auto rounded = [](double value, const char* format) { return std::stod(fmt::format(fmt::runtime(format), value)); };
  std::vector<std::string> out;
  for (const OpLine& l : lines) {
    nlohmann::ordered_json line{{"op", l.name},
                                {"calls", l.calls},
                                {"us", rounded(l.seconds * 1e6, "{:.3f}")},
                                {"gflops", rounded(rate(l.flops, l.seconds) * 1e-9, "{:.6g}")},
                                {"gb_per_s", rounded(rate(l.bytes, l.seconds) * 1e-9, "{:.6g}")},
                                {"speed_of_light", rounded(peaks.share_of(l), "{:.4f}")}};
    if (l.library_seconds > 0) line["library_ratio"] = rounded(rate(l.library_seconds, l.seconds), "{:.4f}");
    out.push_back(line.dump());
  }
  return fmt::format("[{}]", fmt::join(out, ",\n"));  // one line an op
}

}  // namespace fairway
