// The checker of a finished folder: check.cpp has the rules of the folder as a whole, check_seed.cpp those of each seed.
#pragma once

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fairway::submission {

class Checker {
 public:
  explicit Checker(const std::filesystem::path& folder) : folder_(folder) {}
  std::vector<std::string> run();

 private:
  void wrong(const std::string& file, const std::string& sentence) { problems_.push_back(file + ": " + sentence); }
  std::string text_of(const std::string& file);
  nlohmann::json object_in(const std::string& file);
  double number(const nlohmann::json& record, const char* key, const std::string& place);
  void check_identity();
  void check_seed_list();
  void check_means();
  void check_bytes();
  void check_compliance();
  void check_log(const std::string& seed, const nlohmann::json& result);
  void check_training(const std::string& file, const std::string& log, const std::string& seed, const nlohmann::json& result);
  void check_receipt(const std::string& seed, const nlohmann::json& result);
  void check_sums(const std::string& file, const nlohmann::json& receipt, const nlohmann::json& result);
  void check_audit(const std::string& file, const nlohmann::json& receipt);
  void check_readme();
  void check_launch();
  void check_artifact(const std::string& seed, const nlohmann::json& result);

  const std::filesystem::path folder_;
  nlohmann::json submission_;
  std::vector<std::string> seeds_;
  std::vector<std::string> problems_;
};

constexpr size_t kLongestLine = 4096;  // longer ones are none that we wrote, and more than a regular expression should see

// Not a number differs from everything.
inline bool differs(double a, double b, double tolerance) { return !(std::abs(a - b) <= tolerance); }

}  // namespace fairway::submission
