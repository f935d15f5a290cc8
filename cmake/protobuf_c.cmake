# After protoc-c: ExpParameter and LogParameter have a field `base`, which is also what protobuf-c
# calls the head of every message. The C members become `base_`; the field keeps its name.
# (protobuf-c's own option for this needs more packages.)
#
# And beside the header, which is long, one that only declares the messages' names is made, for those
# who pass pointers. It has a list of the data sources, too, in small letters, from their enum;
# data/source.h makes the table of sources of it:
#     #define LOCKSTEP_DATA_BACKENDS(BACKEND) BACKEND(leveldb) BACKEND(lmdb) BACKEND(idx) ...
foreach(suffix h c)
  file(READ ${GENERATED}.${suffix} text)
  string(REPLACE "  float base;" "  float base_;" text "${text}")
  string(REGEX REPLACE "offsetof\\((Lockstep__(Exp|Log)Parameter), base\\)"
         "offsetof(\\1, base_)" text "${text}")
  if(suffix STREQUAL "h")
    string(REGEX MATCHALL "LOCKSTEP__DATA_PARAMETER__DB__[A-Z0-9_]+ = [0-9]" backends "${text}")
    string(REGEX REPLACE "LOCKSTEP__DATA_PARAMETER__DB__([A-Z0-9_]+) = [0-9]" " BACKEND(\\1)" list
           "${backends}")
    if(NOT list)
      message(FATAL_ERROR "${GENERATED}.h: there is no enum DataParameter.DB")
    endif()
    string(REGEX REPLACE "[;]" "" list "${list}")
    string(TOLOWER "${list}" list)
    string(REPLACE "backend(" "BACKEND(" list "${list}")
    string(REGEX MATCHALL "typedef struct [A-Za-z_0-9]+ [A-Za-z_0-9]+;" names "${text}")
    string(REPLACE ";;" ";\n" names "${names};")
    file(WRITE ${NAMES} "#pragma once\n${names}#define LOCKSTEP_DATA_BACKENDS(BACKEND)${list}\n")
  endif()
  file(WRITE ${GENERATED}.${suffix} "${text}")
endforeach()
