// The stored cases hold on every backend and instruction set, and the comparison notices what is wrong.
#include "golden/golden.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "autograd/eager.h"
#include "base/error.h"
#include "ops/cpu/isa/kernels.h"

namespace fairway {
namespace {

const std::vector<std::string> kCases{"pr1105_tiny", "pr726_tiny", "pr1584_tiny_plain", "pr1584_tiny_looped"};

Safetensors stored(const std::string& name) {
  return Safetensors::read(std::string(FAIRWAY_SOURCE_DIR) + "/tests/golden/" + name + ".safetensors");
}

// The file with other metadata, without some of it (value absent) or with one tensor replaced.
Safetensors changed(const Safetensors& file, const std::string& key, const std::optional<std::string>& value,
                    const std::vector<NamedTensor>& replaced = {}) {
  std::map<std::string, std::string> metadata = file.metadata();
  metadata.erase(key);
  if (value) metadata[key] = *value;
  std::vector<NamedTensor> tensors = replaced;
  for (const auto& stored_tensor : file.tensors()) {
    const auto same = [&](const NamedTensor& other) { return other.name == stored_tensor.first; };
    if (std::none_of(replaced.begin(), replaced.end(), same)) tensors.push_back({stored_tensor.first, stored_tensor.second});
  }
  std::string bytes = safetensors_header(tensors, metadata);
  for (const NamedTensor& entry : tensors)
    bytes.append(reinterpret_cast<const char*>(entry.tensor.data), entry.tensor.spec.bytes());
  return Safetensors::parse(bytes, "changed");
}

class Golden : public testing::Test {
 protected:
  Queue queue_{2};
  std::unique_ptr<Executor> ref_ = make_ref_executor(queue_), cpu_ = make_cpu_executor(queue_);
};

TEST_F(Golden, CasesHoldOnTheReference) {
  for (const std::string& name : kCases) {
    const golden::CaseResult result = golden::run_case(stored(name), *ref_);
    EXPECT_TRUE(result.held) << name << ": loss " << result.loss_error << ", gradient of " << result.worst_grad_name << " "
                             << result.worst_grad << ", logits " << result.logits_error << ", hidden " << result.hidden_error;
    EXPECT_GT(result.logits_error, 0) << name;  // something was compared
    EXPECT_GT(result.hidden_error, 0) << name;
    EXPECT_GT(result.worst_grad, 0) << name;
  }
}

TEST_F(Golden, CasesAndTrajectoryHoldOnEveryInstructionSet) {
  const cpu::KernelTable& chosen = cpu::kernels();
  for (const char* isa : {"generic", "avx2", "avx512"}) {
    const cpu::KernelTable* table = cpu::find_kernels(isa);
    if (table == nullptr) continue;
    cpu::use_kernels(*table);
    for (const std::string& name : kCases) {
      const golden::CaseResult result = golden::run_case(stored(name), *cpu_);
      EXPECT_TRUE(result.held) << isa << " " << name << ": loss " << result.loss_error << ", gradient of "
                               << result.worst_grad_name << " " << result.worst_grad;
    }
    const golden::TrajectoryResult result = golden::run_trajectory(stored("pr1105_tiny_train40"), *cpu_);
    EXPECT_TRUE(result.held) << isa << ": loss " << result.worst_loss << ", weights " << result.worst_final << ", average "
                             << result.worst_ema;
    EXPECT_EQ(result.steps, 40);
  }
  cpu::use_kernels(chosen);
}

TEST_F(Golden, TrajectoryHoldsOnTheReference) {
  const Safetensors file = stored("pr1105_tiny_train40");
  ASSERT_TRUE(golden::is_trajectory(file));
  EXPECT_TRUE(golden::run_trajectory(file, *ref_).held);
}

TEST_F(Golden, OneWrongGradientIsNoticedAndNamed) {
  const Safetensors file = stored("pr726_tiny");
  const Tensor gradient = file.get("grad.bank.down");
  for (int64_t i = 0; i < gradient.numel(); ++i) gradient.as<float>()[i] *= 1.001f;
  const golden::CaseResult result = golden::run_case(file, *cpu_);
  EXPECT_FALSE(result.held);
  EXPECT_EQ(result.worst_grad_name, "bank.down");
}

TEST_F(Golden, OneWrongLogitHiddenStateOrLossIsNoticed) {
  for (const char* name : {"logits", "hidden"}) {
    const Safetensors file = stored("pr726_tiny");
    file.get(name).as<float>()[3] += 1;
    EXPECT_FALSE(golden::run_case(file, *cpu_).held) << name;
  }
  const Safetensors file = stored("pr726_tiny");
  const double loss = std::stod(file.metadata().at("loss_f64"));
  EXPECT_FALSE(golden::run_case(changed(file, "loss_f64", std::to_string(loss * 1.0001)), *cpu_).held);
}

TEST_F(Golden, NaNNeverHolds) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"param.bank.up", "param.block.q_gain", "grad.bank.up", "logits", "hidden"}) {
    for (Executor* executor : {ref_.get(), cpu_.get()}) {
      const Safetensors file = stored("pr726_tiny");
      *file.get(name).as<float>() = kNaN;
      EXPECT_FALSE(golden::run_case(file, *executor).held) << name;
    }
  }
  for (const char* name : {"init.bank.up", "final.bank.up", "ema.bank.up"}) {
    const Safetensors file = stored("pr1105_tiny_train40");
    *file.get(name).as<float>() = kNaN;
    EXPECT_FALSE(golden::run_trajectory(file, *cpu_).held) << name;
  }
  const Safetensors file = stored("pr1105_tiny_train40");
  file.get("losses").as<double>()[7] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(golden::run_trajectory(file, *cpu_).held);
}

TEST_F(Golden, BadCasesAreRefused) {
  const Safetensors file = stored("pr1105_tiny");
  const std::vector<std::pair<const char*, std::optional<std::string>>> edits{
      {"VOCAB_SIZE", std::nullopt}, {"VOCAB_SIZE", "many"}, {"VOCAB_SIZE", "-5"}, {"MODEL_DIM", "1e300"},
      {"MODEL_DIM", "nan"},         {"MODEL_DIM", "63.5"},  {"MLP_MULT", "nan"},  {"MLP_MULT", "-1"},
      {"MLP_MULT", "1e300"},        {"MLP_MULT", "0"},      {"NUM_HEADS", "3"},   {"ROPE_DIMS", "7"},
      {"VE_LAYERS", std::nullopt},  {"VE_LAYERS", "1,x"},   {"VE_LAYERS", "900"}, {"XSA_LAST_N", "99"},
      {"BIGRAM_VOCAB_SIZE", "1"},   {"NUM_LAYERS", "255"}};
  for (const auto& [key, value] : edits) {
    EXPECT_THROW(golden::run_case(changed(file, key, value), *cpu_), InputError) << key << " = " << value.value_or("(absent)");
  }
  int32_t id = 1;
  float number = 1;
  const std::vector<std::vector<NamedTensor>> tensors{
      {{"tokens", make_view(&id, {{2, 0}, DType::i32})}, {"targets", make_view(&id, {{2, 0}, DType::i32})}},
      {{"tokens", make_view(&id, {{0, 3}, DType::i32})}, {"targets", make_view(&id, {{0, 3}, DType::i32})}},
      {{"tokens", make_view(&number, {{1, 1}, DType::f32})}},
      {{"tokens", make_view(&id, {{1, 1}, DType::i32})}},
      {{"loss", make_view(&id, {{1}, DType::i32})}},
      {{"loss", make_view(&id, {{0}, DType::f32})}},
      {{"logits", make_view(&id, {{1}, DType::i32})}},
      {{"param.bank.up", make_view(&number, {{1}, DType::f32})}},
      {{"grad.bank.up", make_view(&number, {{1}, DType::f32})}}};
  for (const auto& replaced : tensors) {
    EXPECT_THROW(golden::run_case(changed(file, "", std::nullopt, replaced), *cpu_), InputError) << replaced[0].name;
  }
  file.get("tokens").as<int32_t>()[2] = 1 << 20;
  EXPECT_THROW(golden::run_case(file, *cpu_), InputError);
}

}  // namespace
}  // namespace fairway
