#include "app/analysis_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

namespace fairway::app {
namespace {

using nlohmann::ordered_json;

// JSON has no infinity: such a number is null.
ordered_json finite_json(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

std::string row_name(int64_t layer, int64_t pass) {
  return pass == 0 ? fmt::format("{}", layer) : fmt::format("{}+{}", layer, pass);
}

constexpr std::array kRoles{QuantRole::q, QuantRole::k, QuantRole::v, QuantRole::o, QuantRole::up, QuantRole::down};

ordered_json change_json(const LossChange& change, double bits_per_nat) {
  return {{"nats", change.nats}, {"nats_error", change.error}, {"bpb", change.nats * bits_per_nat}};
}

ordered_json changes_json(const SensitivityReport& report, const std::vector<LossChange>& changes, double bits_per_nat) {
  ordered_json out = ordered_json::object();
  for (size_t w = 0; w < changes.size(); ++w) out[fmt::format("int{}", report.bits[w])] = change_json(changes[w], bits_per_nat);
  return out;
}

ordered_json points_json(const std::vector<RatePoint>& points) {
  ordered_json out = ordered_json::array();
  for (const RatePoint& p : points)
    out.push_back({{"step", std::exp2(p.doublings)}, {"bits", p.bits}, {"error", p.error}, {"bound", p.bound}});
  return out;
}

const MatrixSensitivity& find_matrix(const SensitivityReport& report, QuantRole role, int64_t layer) {
  return *std::find_if(report.matrices.begin(), report.matrices.end(),
                       [&](const MatrixSensitivity& m) { return m.role == role && m.layer == layer; });
}

// Layers down, types across, in millionths of a bit per byte.
std::string sensitivity_table(const SensitivityReport& report, size_t width, double bits_per_nat) {
  const double unit = 1e6 * bits_per_nat;
  std::string text = fmt::format("int{}, one matrix at a time: change of the loss in millionths of a bit per byte\n{:<6}",
                                 report.bits[width], "layer");
  for (const QuantRole role : kRoles) text += fmt::format("{:>9}", role_name(role));
  text += fmt::format("{:>12}\n", "whole layer");
  std::array<double, kRoles.size()> sums{};
  for (size_t layer = 0; layer < report.layers.size(); ++layer) {
    text += fmt::format("{:<6}", layer);
    for (size_t r = 0; r < kRoles.size(); ++r) {
      const double nats = find_matrix(report, kRoles[r], static_cast<int64_t>(layer)).change[width].nats;
      sums[r] += nats;
      text += fmt::format("{:>9.1f}", nats * unit);
    }
    text += fmt::format("{:>12.1f}\n", report.layers[layer][width].nats * unit);
  }
  text += fmt::format("{:<6}", "sum");
  for (const double sum : sums) text += fmt::format("{:>9.1f}", sum * unit);
  const LossChange& all = report.all[width];
  return text + fmt::format("\nall together {:+.1f} ± {:.1f}\n", all.nats * unit, all.error * unit);
}

std::string upgrade_table(const SensitivityReport& report, double bits_per_nat) {
  constexpr size_t kShown = 10;
  std::vector<size_t> order(report.matrices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return report.upgrade_per_mbit(a) > report.upgrade_per_mbit(b); });
  order.resize(std::min(order.size(), kShown));
  std::string text =
      fmt::format("where int{} instead of int{} pays most, in millionths of a bit per byte\n{:<8}{:<6}{:>10}{:>12}\n",
                  report.bits[0], report.bits[1], "layer", "type", "saves", "per Mbit");
  for (const size_t i : order)
    text += fmt::format("{:<8}{:<6}{:>10.1f}{:>12.1f}\n", report.matrices[i].layer, role_name(report.matrices[i].role),
                        1e6 * bits_per_nat * report.upgrade(i), 1e6 * bits_per_nat * report.upgrade_per_mbit(i));
  return text;
}

// The score that made a head what it is.
double leading(const HeadScore& h) {
  switch (h.published()) {
    case HeadClass::induction: return h.induction;
    case HeadClass::previous: return h.previous;
    case HeadClass::positional: return h.first;
    case HeadClass::other: break;
  }
  return std::max({h.previous, h.first, h.self});
}

struct ClassCounts {
  std::array<int64_t, 4> published{}, classical{};
};

ClassCounts count_classes(const std::vector<HeadScore>& heads) {
  ClassCounts counts;
  for (const HeadScore& h : heads) {
    ++counts.published[static_cast<size_t>(h.published())];
    ++counts.classical[static_cast<size_t>(h.classical())];
  }
  return counts;
}

ordered_json classes_json(const std::array<int64_t, 4>& counts) {
  ordered_json out = ordered_json::object();
  for (size_t c = 0; c < counts.size(); ++c) out[name_of(static_cast<HeadClass>(c))] = counts[c];
  return out;
}

std::string classes_text(const char* what, const std::array<int64_t, 4>& counts) {
  std::string text = fmt::format("{}:", what);
  for (size_t c = 0; c < counts.size(); ++c)
    text += fmt::format("{} {} {}", c == 0 ? "" : ",", counts[c], name_of(static_cast<HeadClass>(c)));
  return text + "\n";
}

}  // namespace

AnalysisOutput describe(const SpectraReport& report) {
  AnalysisOutput out;
  out.text = fmt::format(
      "rank utilisation: singular values that hold 99 % of the squares; means over the layers\n"
      "{:<6}{:>9}{:>10}{:>10}{:>13}{:>12}\n",
      "type", "matrices", "rank99 %", "rank95 %", "stable rank", "condition");
  for (const RoleSpectrum& r : report.roles) {
    out.text += fmt::format("{:<6}{:>9}{:>10.1f}{:>10.1f}{:>13.1f}{:>12.4g}\n", role_name(r.role), r.matrices,
                            100 * r.utilization, 100 * r.utilization95, r.stable_rank, r.condition);
    out.json["roles"].push_back({{"role", role_name(r.role)},
                                 {"matrices", r.matrices},
                                 {"utilization", r.utilization},
                                 {"utilization95", r.utilization95},
                                 {"stable_rank", r.stable_rank},
                                 {"condition", finite_json(r.condition)}});
  }
  for (const Spectrum& s : report.matrices)
    out.json["matrices"].push_back({{"name", s.name},
                                    {"role", role_name(s.role)},
                                    {"layer", s.layer},
                                    {"rows", s.rows},
                                    {"cols", s.cols},
                                    {"rank95", s.rank95},
                                    {"rank99", s.rank99},
                                    {"utilization", s.utilization},
                                    {"stable_rank", s.stable_rank},
                                    {"largest", s.largest},
                                    {"least", s.least},
                                    {"condition", finite_json(s.condition)}});
  return out;
}

AnalysisOutput describe(const RateReport& report) {
  AnalysisOutput out;
  out.json = {{"column_gain", report.column_gain}, {"all", points_json(report.all)}};
  out.text = fmt::format(
      "bits a weight by GPTQ with one step a tensor, and the least for the same error; column gain: what steps by column can "
      "save\n"
      "{:<16}{:>12}{:>13}",
      "tensor", "weights", "column gain");
  for (const RatePoint& point : report.all)
    out.text += fmt::format("{:>15}", fmt::format("step {:.3g}", std::exp2(point.doublings)));
  const auto line = [&](const std::string& name, int64_t weights, double gain, const std::vector<RatePoint>& points) {
    out.text += fmt::format("\n{:<16}{:>12}{:>13.3f}", name, weights, gain);
    for (const RatePoint& point : points)
      out.text += fmt::format("{:>15}", fmt::format("{:.3f} {:.3f}", point.bits, point.bound));
  };
  int64_t weights = 0;
  for (const RateCurve& t : report.tensors) {
    out.json["tensors"].push_back({{"name", t.name},
                                   {"rows", t.rows},
                                   {"cols", t.cols},
                                   {"column_gain", t.column_gain},
                                   {"points", points_json(t.points)}});
    line(t.name, t.rows * t.cols, t.column_gain, t.points);
    weights += t.rows * t.cols;
  }
  line("all", weights, report.column_gain, report.all);
  out.text += "\n";
  return out;
}

AnalysisOutput describe(const SensitivityReport& report, double bits_per_nat) {
  AnalysisOutput out;
  out.json = {{"bits", report.bits}, {"loss", report.loss}, {"bpb", report.loss * bits_per_nat}};
  for (size_t i = 0; i < report.matrices.size(); ++i) {
    const MatrixSensitivity& m = report.matrices[i];
    ordered_json line{{"name", m.name}, {"role", role_name(m.role)}, {"layer", m.layer}, {"weights", m.weights}};
    line["change"] = changes_json(report, m.change, bits_per_nat);
    line["mean_square"] = m.mean_square;
    if (report.bits.size() == 2) {
      line["upgrade_bpb"] = report.upgrade(i) * bits_per_nat;
      line["upgrade_bpb_per_mbit"] = report.upgrade_per_mbit(i) * bits_per_nat;
    }
    out.json["matrices"].push_back(std::move(line));
  }
  for (const auto& changes : report.layers) out.json["layers"].push_back(changes_json(report, changes, bits_per_nat));
  out.json["all"] = changes_json(report, report.all, bits_per_nat);
  for (size_t width = 0; width < report.bits.size(); ++width) out.text += sensitivity_table(report, width, bits_per_nat);
  if (report.bits.size() == 2) out.text += upgrade_table(report, bits_per_nat);
  return out;
}

AnalysisOutput describe(const std::vector<HeadScore>& heads) {
  AnalysisOutput out;
  const ClassCounts counts = count_classes(heads);
  out.json["classes"] = {{"published", classes_json(counts.published)}, {"classical", classes_json(counts.classical)}};
  out.text = "attention heads: I induction, P previous token, B first position, - other, with the score that decides\nlayer";
  int64_t row = -1;
  for (const HeadScore& h : heads) {
    if (h.head == 0 && ++row >= 0) out.text += fmt::format("\n{:<6}", row_name(h.layer, h.pass));
    out.text += fmt::format("  {} {:.2f}", "IPB-"[static_cast<size_t>(h.published())], leading(h));
    out.json["heads"].push_back({{"layer", h.layer},
                                 {"pass", h.pass},
                                 {"head", h.head},
                                 {"class", name_of(h.published())},
                                 {"class_classical", name_of(h.classical())},
                                 {"previous", h.previous},
                                 {"first", h.first},
                                 {"self", h.self},
                                 {"offsets", h.offsets},
                                 {"entropy", h.entropy},
                                 {"induction", h.induction},
                                 {"induction_classical", h.induction_classical}});
  }
  out.text +=
      "\n" + classes_text("published definition", counts.published) + classes_text("classical induction", counts.classical);
  return out;
}

AnalysisOutput describe(const CalibrationReport& report) {
  AnalysisOutput out;
  out.json = {{"expected_error", report.expected_error()},
              {"accuracy", report.accuracy()},
              {"confidence", report.confidence()},
              {"entropy", report.entropy()}};
  out.text = fmt::format(
      "calibration: expected error {:.2f} %, accuracy {:.2f} %, mean confidence {:.2f} %, entropy {:.3f} nats\n"
      "{:<14}{:>10}{:>13}{:>11}\n",
      100 * report.expected_error(), 100 * report.accuracy(), 100 * report.confidence(), report.entropy(), "probability",
      "tokens", "confidence", "accuracy");
  for (size_t b = 0; b < kCalibrationBins; ++b) {
    const CalibrationReport::Bin& bin = report.bins()[b];
    const double low = static_cast<double>(b) / kCalibrationBins, high = static_cast<double>(b + 1) / kCalibrationBins;
    out.json["bins"].push_back({{"low", low},
                                {"high", high},
                                {"count", bin.count},
                                {"confidence", bin.mean_confidence()},
                                {"accuracy", bin.accuracy()}});
    if (bin.count > 0)
      out.text += fmt::format("{:.2f} – {:.2f}   {:>10}{:>13.4f}{:>11.4f}\n", low, high, bin.count, bin.mean_confidence(),
                              bin.accuracy());
  }
  return out;
}

AnalysisOutput describe(const std::vector<LensLayer>& layers, double bits_per_nat) {
  AnalysisOutput out;
  out.text = fmt::format("logit lens: what each layer would predict if it were the last\n{:<8}{:>12}{:>16}{:>15}{:>12}\n",
                         "layer", "nats/token", "bits per token", "bits per byte", "accuracy %");
  for (const LensLayer& l : layers) {
    const double bits = l.loss / std::numbers::ln2;
    out.json["layers"].push_back({{"layer", l.layer},
                                  {"pass", l.pass},
                                  {"loss", l.loss},
                                  {"bits_per_token", bits},
                                  {"bpb", l.loss * bits_per_nat},
                                  {"accuracy", l.accuracy}});
    out.text += fmt::format("{:<8}{:>12.4f}{:>16.4f}{:>15.4f}{:>12.2f}\n", row_name(l.layer, l.pass), l.loss, bits,
                            l.loss * bits_per_nat, 100 * l.accuracy);
  }
  return out;
}

}  // namespace fairway::app
