// Built without any protection (tests/supply/CMakeLists.txt).
#include <cstdio>
#include <cstring>

int main(int count, char** words) {
  char name[64];
  std::strcpy(name, count > 1 ? words[1] : "nobody");
  std::puts(name);
}
