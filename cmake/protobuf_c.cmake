# After protoc-c: ExpParameter and LogParameter have a field `base`, which is also what protobuf-c
# calls the head of every message. The C members become `base_`; the field keeps its name.
# (protobuf-c's own option for this needs more packages.)
foreach(suffix h c)
  file(READ ${GENERATED}.${suffix} text)
  string(REPLACE "  float base;" "  float base_;" text "${text}")
  string(REGEX REPLACE "offsetof\\((Lockstep__(Exp|Log)Parameter), base\\)"
         "offsetof(\\1, base_)" text "${text}")
  file(WRITE ${GENERATED}.${suffix} "${text}")
endforeach()
