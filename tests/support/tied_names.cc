// Prints what the table of tied names (hf/adapter/lora/tied_classes.h) has of each class that the standard input names, a line
// each; nothing behind the name of a class that the table does not have.
//
//   BertForMaskedLM 1 0 bert.embeddings.word_embeddings.weight=cls.predictions.decoder.weight;cls.predictions.bias=...
//                   by default, fixed
#include <iostream>
#include <string>

#include "hf/adapter/lora/tied_classes.h"

int main() {
  for (std::string name; std::cin >> name;) {
    std::cout << name;
    if (const auto of = mckpt::impl::tied_class(name)) {
      std::cout << ' ' << of->by_default << ' ' << of->fixed << ' ';
      const char* before = "";
      for (const auto& parameter : of->parameters)
        for (std::size_t i = 0; i < parameter.size(); i++) {
          std::cout << (i == 0 ? before : "=") << parameter[i];
          before = ";";
        }
    }
    std::cout << '\n';
  }
}
