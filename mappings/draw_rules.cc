// draw_rules FOLDER: writes the picture of every example to FOLDER/NAME.svg.
#include <cstdio>
#include <fstream>

#include "mappings/picture.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: draw_rules FOLDER\n");
    return 2;
  }
  for (const mckpt::RuleExample& example : mckpt::all_examples()) {
    std::string path = mckpt::cat(argv[1], "/", example.name, ".svg");
    std::ofstream file(path, std::ios::binary);
    file << mckpt::draw_svg(example);
    file.close();
    if (file.fail()) {
      std::fprintf(stderr, "draw_rules: cannot write %s\n", path.c_str());
      return 5;
    }
  }
  return 0;
}
