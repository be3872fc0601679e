// Every section that a comment or a page cites exists in docs/spec. docs/spec/README.md has the forms of a citation.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace fairway {
namespace {

using Sections = std::set<std::string>;

// The table of docs/spec/README.md.
const std::vector<std::pair<std::string, std::string>> kFileOfName{
    {"scoring spec", "quantize-pack-score.md"},      {"record spec", "record-2135.md"}, {"levers spec", "levers.md"},
    {"checkpoint spec", "published-checkpoints.md"}, {"command spec", "cli.md"},        {"spec", "model-and-training.md"},
};
constexpr const char* kUnnamed = "model-and-training.md";

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Numbers of headings ("## 4.", "### 4.12b"), of numbered paragraphs ("6.1 …", "A.3 …"), of list items ("4.6.3") and of
// lettered rules.
Sections sections_of(const std::string& markdown) {
  static const std::regex heading(R"(^#+ (?:Appendix )?(A|\d+(?:\.\d+)*[a-z]?)\b.*)"), paragraph(R"(^((?:A|\d+)\.\d+)\s.*)"),
      item(R"(^\s*(\d+)\. .*)"), rule(R"(^\(([a-z])\) .*)");
  Sections found;
  std::string current, line;
  std::istringstream lines(markdown);
  for (std::smatch match; std::getline(lines, line);) {
    if (std::regex_match(line, match, heading) || std::regex_match(line, match, paragraph)) {
      current = match[1];
    } else if (std::regex_match(line, match, item)) {
      found.insert(current + "." + match[1].str());
    } else if (std::regex_match(line, match, rule)) {
      found.insert(current + match[1].str());
    }
    found.insert(current);
  }
  return found;
}

// The comments of a C++ source as one text: what a line break cuts apart belongs together.
std::string comments_of(const std::string& source) {
  std::string text, line;
  std::istringstream lines(source);
  while (std::getline(lines, line)) {
    const size_t begin = line.find("//");
    if (begin == std::string::npos) continue;
    text += line.substr(begin + 2) + " ";
  }
  return text;
}

struct Citation {
  std::string file, section;
  bool operator==(const Citation&) const = default;
};

// "4.6.3" and "5" make "4.6.5"; "4.1" and "4.3" make "4.3": the end of a range says only what differs.
std::string end_of_range(const std::string& from, const std::string& to) {
  if (to.find('.') != std::string::npos || from.find('.') == std::string::npos) return to;
  return from.substr(0, from.rfind('.') + 1) + to;
}

std::vector<Citation> citations_in(const std::string& text) {
  static const std::regex form(
      R"(([Ss]coring|[Rr]ecord|[Ll]evers|[Cc]heckpoint|[Cc]ommand)?\s*\b[Ss]pec\b|([\w-]+\.md)\b|(?:§+|\b(?=A\.\d))((?:A|\d+)(?:\.\d+)*[a-z]?)\b(?:(?:–|-)(?:§|A\.)?(\d+(?:\.\d+)*))?(?: step (\d+))?)");
  std::string file = kUnnamed;
  std::vector<Citation> found;
  for (std::sregex_iterator match(text.begin(), text.end(), form), end; match != end; ++match) {
    const std::smatch& m = *match;
    const std::string section = m[3];
    if (section.empty() && m[2].matched) {
      for (const auto& [name, of] : kFileOfName) file = m[2] == of ? of : file;
    } else if (section.empty()) {
      std::string name = m[1].matched ? m[1].str() + " spec" : "spec";
      name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));  // it may begin a sentence
      for (const auto& [known, of] : kFileOfName) file = name == known ? of : file;
    } else {
      found.push_back({file, section});
      if (m[4].matched) found.push_back({file, end_of_range(section, m[4])});
      if (m[5].matched) found.push_back({file, section + "." + m[5].str()});
    }
  }
  return found;
}

const std::filesystem::path kProject = FAIRWAY_SOURCE_DIR;

std::map<std::string, Sections> all_sections() {
  std::map<std::string, Sections> found;
  for (const auto& [name, file] : kFileOfName) found[file] = sections_of(read_text(kProject / "docs" / "spec" / file));
  return found;
}

TEST(Citations, FormsAreUnderstood) {
  using C = std::vector<Citation>;
  const std::string model = "model-and-training.md", scoring = "quantize-pack-score.md";
  EXPECT_EQ(citations_in("as spec §4.6, §6.2 says"), (C{{model, "4.6"}, {model, "6.2"}}));
  EXPECT_EQ(citations_in("(spec §11.3; scoring spec §4.3b) and §4.12b"),
            (C{{model, "11.3"}, {scoring, "4.3b"}, {scoring, "4.12b"}}));
  EXPECT_EQ(citations_in("spec §8.1.4–6, A.2"), (C{{model, "8.1.4"}, {model, "8.1.6"}, {model, "A.2"}}));
  EXPECT_EQ(citations_in("Scoring spec §1.2-1.3, §4.5 step 5"),
            (C{{scoring, "1.2"}, {scoring, "1.3"}, {scoring, "4.5"}, {scoring, "4.5.5"}}));
  EXPECT_EQ(citations_in("spec §4, A.1–A.4"), (C{{model, "4"}, {model, "A.1"}, {model, "A.4"}}));
  EXPECT_EQ(citations_in("record spec §7.4; levers.md §2"), (C{{"record-2135.md", "7.4"}, {"levers.md", "2"}}));
  EXPECT_TRUE(citations_in("Spec spec = tensor.spec; 4.6").empty());
  EXPECT_EQ(comments_of("int a;  // spec\n// §4.6\nint b;\n"), " spec  §4.6 ");
}

TEST(Citations, SectionsAreFound) {
  const Sections found =
      sections_of("## 4. Forward\n### 4.6 Attention\n1. q\n2. k\n6.1 **Loss.** p\n(b) rule\n### 4.12b Checks\nA.3 gate\n");
  for (const char* section : {"4", "4.6", "4.6.2", "6.1", "6.1b", "4.12b", "A.3"})
    EXPECT_TRUE(found.contains(section)) << section;
  EXPECT_FALSE(found.contains("4.6.3"));
  EXPECT_FALSE(found.contains("4.7"));
}

TEST(Citations, EveryCitedSectionExists) {
  const std::map<std::string, Sections> sections = all_sections();
  int cited = 0;
  for (const char* folder : {"src", "tests", "docs"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kProject / folder)) {
      static const std::set<std::string> kSources{".h", ".cpp", ".cu", ".cuh", ".def", ".inl"};
      const std::string ending = entry.path().extension(), path = std::filesystem::relative(entry.path(), kProject);
      if (path.starts_with("docs/spec/") || path == "tests/layering/citations_test.cpp") continue;
      if (!kSources.contains(ending) && ending != ".md") continue;
      const std::string text = read_text(entry.path());
      for (const Citation& citation : citations_in(ending == ".md" ? text : comments_of(text))) {
        ++cited;
        EXPECT_TRUE(sections.at(citation.file).contains(citation.section))
            << path << " cites §" << citation.section << ", which docs/spec/" << citation.file << " does not have";
      }
    }
  }
  EXPECT_GT(cited, 200);
}

}  // namespace
}  // namespace fairway
