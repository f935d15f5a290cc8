# The maps of share/maps as constants: cmake -DOUTPUT=FILE -DFOLDER=FOLDER -P weight_maps.cmake
file(GLOB maps ${FOLDER}/*.map)
list(SORT maps)
set(text "/* Made of share/maps by cmake/weight_maps.cmake. */
#include \"snapshot/weight_map.h\"

const struct ls_builtin_map ls_builtin_maps[] = {\n")
foreach(map ${maps})
  get_filename_component(name ${map} NAME_WE)
  file(READ ${map} content)
  string(REPLACE "\\" "\\\\" content "${content}")
  string(REPLACE "\"" "\\\"" content "${content}")
  string(REPLACE "\n" "\\n\"\n     \"" content "${content}")
  string(APPEND text "    {\"${name}\",\n     \"${content}\"},\n")
endforeach()
string(APPEND text "    {NULL, NULL}};\n")
file(WRITE ${OUTPUT} "${text}")
