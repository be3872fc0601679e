// `fairway data overlap`: how many documents of a validation text are in a training text?
#include "app/command.h"
#include "base/error.h"
#include "base/output.h"
#include "data/overlap.h"

namespace fairway::app {

void add_overlap(CLI::App& data) {
  auto train = std::make_shared<std::string>(), validation = std::make_shared<std::string>();
  CLI::App* command =
      add_command(data, "overlap", "count the documents that two texts have in common", [=](const CommonFlags& common) {
        const data::Overlap overlap = data::find_overlap(*train, *validation);
        if (!overlap.shared.unknown.empty()) throw InputError(overlap.shared.unknown);
        if (!common.quiet)
          for (const std::string& note : overlap.notes) print_err("note: " + note + "\n");
        nlohmann::ordered_json result{{"shared_documents", overlap.shared.shared},
                                      {"train_documents", overlap.shared.training},
                                      {"val_documents", overlap.shared.validation},
                                      {"first", nullptr},
                                      {"notes", overlap.notes}};
        if (overlap.shared.shared > 0)
          result["first"] = {{"document", overlap.shared.example}, {"token", overlap.shared.example_token}};
        print_result(common, result, sentence_of(overlap.shared) + "\n");
        return 0;
      });
  command->add_option("TRAIN", *train, "folder with training shards")->required();
  command->add_option("VAL", *validation, "folder with validation shards; may be the same")->required();
}

}  // namespace fairway::app
