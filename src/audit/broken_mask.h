// Negative control: an executor whose causal mask is off by one, on any backend. Before every attention each row's key and
// value are those of the row after it in its sequence, so that a row sees one token more than it may (and not the first).
#pragma once

#include "autograd/executor.h"

namespace fairway {

class BrokenMaskExecutor final : public Executor {
 public:
  explicit BrokenMaskExecutor(Executor& honest) : Executor(honest.queue()), honest_(&honest) {}
  std::unique_ptr<Session> open(Recording recording, Arena* activations = nullptr) override;

  Backend backend() const override { return honest_->backend(); }
  std::unique_ptr<Sequence> open_sequence() override { return honest_->open_sequence(); }
  std::unique_ptr<Delivery> open_delivery() override { return honest_->open_delivery(); }
  void run_call(const BoundCall& call) override { honest_->run_call(call); }
  void upload(const Tensor& written) override { honest_->upload(written); }
  void fill(const Tensor& input, const Tensor& from) override { honest_->fill(input, from); }
  void download(const Tensor& read) override { honest_->download(read); }
  Tensor resident(const Tensor& host) override { return honest_->resident(host); }
  void wait() override { honest_->wait(); }
  size_t free_bytes() override { return honest_->free_bytes(); }

 private:
  Executor* honest_;
  std::vector<std::unique_ptr<Arena>> next_rows_;  // of all sessions
};

}  // namespace fairway
