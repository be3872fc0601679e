// Examples for `fairway help`, by command.
#include <map>

#include "app/command_info.h"

namespace fairway::manual {

std::vector<Example> examples_of(const std::string& command) {
  static const std::map<std::string, std::vector<Example>> kExamples{
      {"run",
       {{"fairway run demo --data shards --out runs/a --seconds 150", "a recipe to a report in one folder"},
        {"fairway run demo --data shards --out runs/a --seconds 150 --resume", "continue after a kill"},
        {"fairway run pr1105 --data shards --out runs/s --seeds 1,2,3 --against pr1019", "three seeds and a test"},
        {"fairway run demo --data shards --out runs/lr --sweep optim.matrix.lr=0.01,0.02,0.04",
         "which learning rate is best"}}},
      {"train",
       {{"fairway train smoke --data shards --out runs/b --steps 40", "training and averaging only"},
        {"fairway train smoke --data shards --out runs/b --steps 40 --resume", "continue from a checkpoint"},
        {"fairway train pr1105 --data official --tokenizer fineweb_1024_bpe.model --out runs/c",
         "official shards, whose tokenizer lies elsewhere"}}},
      {"score",
       {{"fairway score runs/a/model.fwy --data shards --mode sliding --out runs/a", "score.json and receipt.json"},
        {"fairway score runs/a/model.fwy --data shards --ladder", "every legal mode and what it costs"}}},
      {"audit",
       {{"fairway audit runs/a/model.fwy --data shards --receipt runs/a/receipt.json",
         "test the rules and add the results to the receipt"},
        {"fairway audit --verify runs/a/receipt.json --again", "does the receipt still hold?"}}},
      {"quantize", {{"fairway quantize runs/a --calibration self", "what each tensor loses on the recipe's grids"}}},
      {"generate",
       {{"fairway generate runs/a/model.fwy --prompt \"The \" --tokens 80 --seed 7", "the same text every time"},
        {"fairway generate runs/a/model.fwy", "a prompt loop on a terminal"}}},
      {"analyze", {{"fairway analyze all runs/demo", "ranks, heads, calibration, lens and sensitivity, for the report too"}}},
      {"data", {{"fairway data inspect shards", "is this folder sound?"}}},
      {"data train-tokenizer", {{"fairway data train-tokenizer text.txt --vocab 1024 --out tokenizer.model", "a tokenizer"}}},
      {"data tokenize",
       {{"fairway data tokenize text.txt --tokenizer tokenizer.model --val held_out.txt --out shards", "text to shards"}}},
      {"data inspect", {{"fairway data inspect shards", "headers, counts and problems"}}},
      {"data overlap", {{"fairway data overlap shards shards", "documents that are in both texts"}}},
      {"data fetch",
       {{"fairway data fetch sp1024 --manifest files.json --out official --shards 10", "what a list of files names"}}},
      {"recipes", {{"fairway recipes", "the built-in recipes"}}},
      {"recipe", {{"fairway recipe show pr1105", "every key of a recipe"}}},
      {"recipe show", {{"fairway recipe show pr1105", "every key of a recipe"}}},
      {"export",
       {{"fairway export runs/a --out weights.safetensors", "weights under the interchange names"},
        {"fairway export runs/a --names published --out final_model.pt", "a state dict for torch.load"}}},
      {"unpack", {{"fairway unpack runs/a/model.fwy --out weights.safetensors", "an artifact's weights"}}},
      {"import",
       {{"fairway import final_model.pt --out runs/published",
         "a run folder from a checkpoint of PyTorch, the recipe told by its shapes"},
        {"fairway import weights.safetensors --recipe smoke --out runs/imported", "a run folder from a weight file"}}},
      {"golden", {{"fairway golden tests/golden/pr726_tiny.safetensors --backend ref", "known loss and gradients"}}},
      {"ops", {{"fairway ops", "every op and the backends that have it"}}},
      {"bench",
       {{"fairway bench step --recipe demo", "milliseconds of a training step"},
        {"fairway bench ops", "matrix products, compared with the machine's peak"}}},
      {"pack",
       {{"fairway pack runs/a", "runs/a/model.fwy within the challenge's bytes"},
        {"fairway pack runs/a --budget 4MB --out small.fwy", "the best model for another budget"},
        {"fairway pack runs/a --as-published", "the recipe's own setting"}}},
      {"compare",
       {{"fairway compare runs/s --against pr1019", "over seeds, against a published system"},
        {"fairway compare runs/new1 runs/new2 --against runs/old1 runs/old2 --paired", "the same seeds on both sides"},
        {"fairway compare runs/new1 --against runs/old1 --paired documents", "two models, document by document"}}},
      {"report", {{"fairway report runs/a", "runs/a/report.html"}, {"fairway report runs/a --serve", "live, while it trains"}}},
      {"submission",
       {{"fairway submission runs/s --name Mine --author Me --github-id me --out records/mine",
         "the challenge's folder from three runs"},
        {"fairway submission --check records/mine", "check it by the rules"}}},
      {"doctor", {{"fairway doctor", "what this machine offers"}}},
      {"help", {{"fairway help data tokenize", "one command with examples"}}},
      {"completion", {{"fairway completion bash > ~/.local/share/bash-completion/completions/fairway", "for bash"}}},
      {"man", {{"fairway man > fairway.1 && man ./fairway.1", "the manual page"}}},
  };
  const auto found = kExamples.find(command);
  return found == kExamples.end() ? std::vector<Example>{} : found->second;
}

}  // namespace fairway::manual
