// Nothing: the target that it belongs to holds the headers that tests read once (CMakeLists.txt).
