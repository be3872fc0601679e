// fairway.1 in the man macros of roff.
#include <fmt/core.h>

#include "app/command_info.h"

namespace fairway::manual {
namespace {

// Backslashes and dashes as roff wants them; a line must not begin with a control character.
std::string roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

void add_options(const CommandInfo& command, std::string& page) {
  for (const OptionInfo& option : command.options) {
    const std::string value = option.value.empty() || option.argument ? "" : fmt::format(" \\fI{}\\fR", roff(option.value));
    page += fmt::format(".TP\n\\fB{}\\fR{}\n{}{}\n", roff(option.name), value, roff(option.text()),
                        option.required ? " (required)" : "");
  }
}

void add_command(const CommandInfo& command, const std::string& path, std::string& page) {
  page += fmt::format(".SS {}\n{}\n", roff(path), roff(command.help));
  add_options(command, page);
  for (const Example& example : command.examples)
    page += fmt::format(".PP\nExample, {}:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n", roff(example.what), roff(example.command));
  for (const CommandInfo& sub : command.commands) add_command(sub, path + " " + sub.name, page);
}

}  // namespace

std::string manual_page(const CommandInfo& program, const std::string& version) {
  std::string page = fmt::format(".TH FAIRWAY 1 \"\" \"fairway {}\" \"User commands\"\n", version);
  page += fmt::format(".SH NAME\n{} \\- train, pack and score small language models\n", program.name);
  page += fmt::format(".SH SYNOPSIS\n.B {}\n.I command\n[options]\n.SH DESCRIPTION\n{}\n", program.name, roff(program.help));
  page += ".SH COMMANDS\n";
  for (const CommandInfo& command : program.commands) add_command(command, "fairway " + command.name, page);
  page +=
      ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nthe check did not hold, or the work failed\n.TP\n.B 2\nbad input or usage\n"
      ".TP\n.B 130\ninterrupted after saving\n";
  page +=
      ".SH FILES\nA run folder holds recipe.toml, metrics.jsonl, timing.jsonl, train.log, checkpoint/, averaged.safetensors,\n"
      "model.fwy, pack.json, score.json, receipt.json, audit.json, samples.json, report.html and run.json, the ledger of\n"
      "\\fBfairway run\\fR.\n";
  return page;
}

}  // namespace fairway::manual
