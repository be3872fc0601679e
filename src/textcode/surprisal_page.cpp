// Nine shades of one hue, whose lightness alone tells the bits: readable without colours, in print, and on light and dark.
#include <fmt/format.h>

#include <array>

#include "textcode/surprisal.h"

namespace fairway::textcode {
namespace {

constexpr std::array kFrom{0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0};  // bits at which a shade begins

size_t shade_of(double bits) {
  size_t shade = 0;
  while (shade + 1 < kFrom.size() && bits >= kFrom[shade + 1]) ++shade;
  return shade;
}

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#111;--edge:#888}
body{margin:2rem auto;max-width:60rem;padding:0 1rem;background:var(--paper);color:var(--ink);font:16px/1.7 system-ui,sans-serif}
.text{white-space:pre-wrap;overflow-wrap:anywhere;font-family:ui-monospace,monospace}
.text span{border-radius:2px}.text span:hover{outline:2px solid var(--ink)}
.legend span{display:inline-block;min-width:3.6em;text-align:center;padding:0 .3em;border:1px solid var(--edge)}
.changed{text-decoration:underline dotted}
.s0{background:#fff;color:#111}.s1{background:#eaf2fa;color:#111}.s2{background:#d3e4f3;color:#111}.s3{background:#b3d2ea;color:#111}
.s4{background:#86b9de;color:#111}.s5{background:#5a9fd0;color:#111}.s6{background:#2f74b5;color:#fff}.s7{background:#15508f;color:#fff}
.s8{background:#08306b;color:#fff}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#eee;--edge:#777}
.s0{background:#14181d;color:#eee}.s1{background:#16263a;color:#eee}.s2{background:#173655;color:#eee}.s3{background:#184674;color:#fff}
.s4{background:#1d5a97;color:#fff}.s5{background:#2f74b5;color:#fff}.s6{background:#7db2df;color:#111}.s7{background:#b0d3ef;color:#111}
.s8{background:#e6f2fc;color:#111}}
)css";

std::string legend() {
  std::string out = "<p class=\"legend\">bits of a piece: ";
  for (size_t i = 0; i < kFrom.size(); ++i)
    out += i + 1 < kFrom.size() ? fmt::format("<span class=\"s{}\">{:g}–{:g}</span>", i, kFrom[i], kFrom[i + 1])
                                : fmt::format("<span class=\"s{}\">{:g}+</span>", i, kFrom[i]);
  return out + "</p>\n";
}

}  // namespace

std::string surprisal_page(std::span<const TextPiece> pieces, const PageFacts& facts) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{}</title><style>{}</style></head><body>\n<h1>{}</h1>\n<p>{:.4f} bits per byte "
      "over {} bytes in {} tokens.",
      html_escaped(facts.title), kStyle, html_escaped(facts.title), facts.bits_per_byte, facts.bytes, facts.tokens);
  if (facts.restoring_bits > 0)
    out += fmt::format(" {:.0f} of the bits restore what the tokenizer changes; such pieces are underlined.",
                       facts.restoring_bits);
  out += " Hover over a piece for its bits.</p>\n" + legend() + "<div class=\"text\">";
  for (const TextPiece& piece : pieces) {
    out += fmt::format("<span class=\"s{}{}\" title=\"{:.2f} bits", shade_of(piece.bits), piece.changed ? " changed" : "",
                       piece.bits);
    if (piece.changed) out += ", read as &quot;" + html_escaped(piece.read) + "&quot;";
    out += "\">" + html_escaped(piece.text) + "</span>";
  }
  return out + "</div>\n</body></html>\n";
}

}  // namespace fairway::textcode
