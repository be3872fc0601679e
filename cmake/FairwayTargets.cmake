# One static library per folder of src/, linked exactly as docs/architecture.md allows (the layering test reads the includes).

add_library(fairway_options INTERFACE)
target_compile_features(fairway_options INTERFACE cxx_std_20)
target_include_directories(fairway_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
# No fast-math anywhere: NaN must stay NaN, and the same source must give the same bits. -ffp-contract=off keeps the
# reference exact; the kernels under ops/cpu/isa ask for fused multiply-add themselves.
# -Wno-restrict: g++ 12 sees overlaps in "text" + std::string where there are none. -Wno-subobject-linkage: a file inside a unit looks
# like a header to it. -fPIC, hidden: programs and shared libraries are linked from the same objects, and a library shows only what it
# declares. -fsigned-char: on Arm it is not the default, and the same source must read the same bytes. -fmacro-prefix-map: a program does not depend on the folder it is built in.
target_compile_options(fairway_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor
  -Wno-missing-field-initializers $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-subobject-linkage> -ffp-contract=off $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},aarch64>:-fsigned-char> -fPIC -fvisibility=hidden -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/= $<$<BOOL:${FAIRWAY_WARNINGS_AS_ERRORS}>:-Werror>>)

# What makes a wrong write end the program instead of serving an attacker. tests/hardening reads it off the program; what it costs
# is in docs/dependencies.md. Sanitizers do the same themselves, and miss what checked library functions do.
option(FAIRWAY_HARDENING "Checked library functions, stack protector, read-only relocations, addresses that change" ON)
if(FAIRWAY_HARDENING AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT FAIRWAY_FUZZ)
  target_compile_options(fairway_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong>)
  target_link_options(fairway_options INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> LINKER:-z,relro,-z,now,-z,noexecstack)
endif()

# fairway_units(list machine options file…): files of the list that are for one kind of machine (x86_64 or aarch64), with the
# options that their instruction set needs. Where the build is for another kind they leave the list; the generic ones stay.
function(fairway_units list machine options)
  string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" here)
  string(REGEX REPLACE "^amd64$" "x86_64" here "${here}")
  string(REGEX REPLACE "^arm64$" "aarch64" here "${here}")
  set(kept ${${list}})
  foreach(file ${ARGN})
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${options}")
    if(NOT here STREQUAL machine)
      list(REMOVE_ITEM kept ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    endif()
  endforeach()
  set(${list} ${kept} PARENT_SCOPE)
endfunction()

# fairway_record(target): what a record needs (train, pack, score). The others serve people; no target of a record links them.
function(fairway_record target)
  set_property(GLOBAL APPEND PROPERTY FAIRWAY_RECORD_TARGETS ${target})
endfunction()

# fairway_library(name DEPS fairway_base … [RECORD] [COLD]): every .cpp of the calling folder, or those listed after SOURCES.
# RECORD: see above. COLD: no loop of it is ever waited for, so compiling it quickly counts for more than its own speed.
# Most of a file's compile time goes into the headers it includes, so files are compiled a few at a time as one unit: two in one
# folder may not use a name twice in their unnamed namespaces. Files with options of their own stay alone.
function(fairway_library name)
  cmake_parse_arguments(ARG "COLD;RECORD" "" "DEPS;SOURCES" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC fairway_options ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${FAIRWAY_UNITY} UNITY_BUILD_BATCH_SIZE 7)
  if(ARG_RECORD)
    fairway_record(${name})
  endif()
  if(ARG_COLD)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
  endif()
endfunction()

# fairway_test(DEPS … [SERIAL] [LOCK name] [TIMEOUT seconds] [UNITS [ALONE …]]): the .cpp files of the calling folder under tests/ become one executable, its cases known
# to ctest. SERIAL: they start programs that use every core, so nothing else runs beside them. LOCK: nor does one of
# the same name beside another. UNITS: compiled a few files at a time,
# but for those named after ALONE, which share names with others of the folder.
function(fairway_test)
  cmake_parse_arguments(ARG "SERIAL;UNITS" "TIMEOUT;LOCK" "DEPS;ALONE" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(ARG_LOCK)
    set(lock RESOURCE_LOCK ${ARG_LOCK})
  endif()
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(${folder}_test ${sources})
  target_include_directories(${folder}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  if(ARG_UNITS)
    set_target_properties(${folder}_test PROPERTIES UNITY_BUILD ${FAIRWAY_UNITY} UNITY_BUILD_BATCH_SIZE 4)
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  target_compile_options(${folder}_test PRIVATE -O1)  # compiling tests costs more than running them
  target_compile_definitions(${folder}_test PRIVATE
    FAIRWAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}" FAIRWAY_PROGRAM="${CMAKE_BINARY_DIR}/bin/fairway")
  target_link_libraries(${folder}_test PRIVATE ${ARG_DEPS} GTest::gmock_main)
  gtest_discover_tests(${folder}_test DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS ${folder} RUN_SERIAL ${ARG_SERIAL} ${lock})
endfunction()
