# Cross-compiles for 64-bit Arm with what scripts/setup-aarch64 installs; programs run under qemu (make aarch64).
# Debian's libraries for both machines lie side by side, and so does the loader: qemu needs no root of its own. Of SentencePiece a
# system can have one only; the other is unpacked in third_party.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_CURRENT_LIST_DIR}/../third_party/aarch64/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
