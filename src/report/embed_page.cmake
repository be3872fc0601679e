# cmake -DOUT=file.cpp -DFOLDER=… -P embed_page.cmake: page.html with its styles and scripts, as C++ string literals short enough
# for any compiler.
file(READ ${FOLDER}/page.html text)
file(READ ${FOLDER}/page.css style)
set(script "")
foreach(part base curves charts analysis run several page)
  file(READ ${FOLDER}/${part}.js piece)
  string(APPEND script "${piece}")
endforeach()
string(REPLACE "@STYLE@" "${style}" text "${text}")
string(REPLACE "@SCRIPT@" "${script}" text "${text}")
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND pieces "    R\"~~(${piece})~~\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${OUT} "// Written by src/report/embed_page.cmake.
#include <string_view>

namespace fairway {
extern const std::string_view kReportPage;
const std::string_view kReportPage =
${pieces}    ;
}  // namespace fairway
")
