# The program of `make package` runs on systems other than the one that built it. It is linked from the same objects, with archives
# in the place of shared libraries whose versions differ from system to system. MPI is left out, libcurl is opened when it is
# needed, and SentencePiece, which Debian has as shared libraries only, is carried in lib/fairway beside bin.

# fairway_archives(NAME library…): where a target has FAIRWAY_PORTABLE, PkgConfig::NAME means these archives.
function(fairway_archives name)
  set(archives "")
  foreach(library ${ARGN})
    find_library(FAIRWAY_ARCHIVE_${library} lib${library}.a)
    mark_as_advanced(FAIRWAY_ARCHIVE_${library})
    if(NOT FAIRWAY_ARCHIVE_${library})
      message(STATUS "lib${library}.a was not found: make package cannot link it in")
      return()
    endif()
    list(APPEND archives ${FAIRWAY_ARCHIVE_${library}})
  endforeach()
  get_target_property(shared PkgConfig::${name} INTERFACE_LINK_LIBRARIES)
  set_property(TARGET PkgConfig::${name} PROPERTY INTERFACE_LINK_LIBRARIES
    "$<IF:$<BOOL:$<TARGET_PROPERTY:FAIRWAY_PORTABLE>>,${archives},${shared}>")
endfunction()

fairway_archives(LZMA lzma)
fairway_archives(BROTLI brotlienc brotlidec brotlicommon)
fairway_archives(ZSTD zstd)
fairway_archives(ZLIB z)
fairway_archives(CRYPTO crypto)
