// One text from one model: what `fairway generate` does for a prompt, alone, in the loop and side by side.
#pragma once

#include "app/text_model.h"
#include "library/text_writer.h"

namespace fairway::app {

struct Written {
  std::string text;  // without the prompt
  std::vector<int32_t> tokens;
  double first_token = 0;  // seconds since the program began
  double rate = 0;         // tokens a second after the first
  bool interrupted = false;
};

// `tell` gets the text as it is made; it returns false to stop.
Written write_text(const TextModel& model, const TextRequest& flags, const std::function<bool(const std::string&)>& tell);

// A terminal's prompt loop: every line is continued until Ctrl-D, or Ctrl-C at the prompt (Ctrl-C in a text ends only that).
// Returns the exit status.
int run_prompt_loop(const TextModel& model, TextRequest flags);

// Two texts in columns that fit `width`, and how alike their tokens are (scoring spec §7.4).
struct Likeness {
  double positions = 0;  // share of positions with the same token
  double unigrams = 0;   // share of tokens that both have, counted with their number
};
Likeness likeness(const std::vector<int32_t>& a, const std::vector<int32_t>& b);
std::string side_by_side(const std::string& left, const std::string& right, size_t width);

}  // namespace fairway::app
