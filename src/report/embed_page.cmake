# cmake -DOUT=file.cpp -DPAGE=page.html -P embed_page.cmake: writes the page as C++ string literals short enough for any compiler.
file(READ ${PAGE} text)
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND pieces "    R\"~~(${piece})~~\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${OUT} "// Written by src/report/embed_page.cmake from src/report/page.html.
#include <string_view>

namespace fairway {
extern const std::string_view kReportPage;
const std::string_view kReportPage =
${pieces}    ;
}  // namespace fairway
")
