#include "io/card/inert.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace {

std::string in_line(std::string_view text) { return inert(text, MarkdownPlace::kLine); }
std::string in_cell(std::string_view text) { return inert(text, MarkdownPlace::kTableCell); }

TEST(Inert, LeavesOrdinaryNames) {
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight", "0_0.distcp", "sound, with warnings",
                           "a: b", "BF16", "1,024 bytes (1.00 KiB)"}) {
    EXPECT_EQ(in_line(name), name);
    EXPECT_EQ(in_cell(name), name);
  }
}

// tests/judges/cards_are_inert.py renders these.
TEST(Inert, PutsTheRestIntoCode) {
  struct Case {
    const char *text, *line, *cell;
  };
  for (const Case& c :
       {Case{"<b>", "`<b>`", "`<b>`"}, Case{"a`b", "``a`b``", "``a`b``"}, Case{"`a", "`` `a ``", "`` `a ``"},
        Case{"http://a", "`http://a`", "`http://a`"}, Case{"WWW.a", "`WWW.a`", "`WWW.a`"},
        Case{"a@b.c", "`a@b.c`", "`a@b.c`"}, Case{"a|b", "a|b", "a\\|b"},
        Case{"a\\|b", "`a\\|b`", "`a\\\\x7cb`"}, Case{"[a](b)", "`[a](b)`", "`[a](b)`"},
        Case{"__a__", "`__a__`", "`__a__`"}, Case{"a\nb", "`a\\x0ab`", "`a\\x0ab`"}, Case{"", "", ""}}) {
    EXPECT_EQ(in_line(c.text), c.line);
    EXPECT_EQ(in_cell(c.text), c.cell);
  }
}

}  // namespace
}  // namespace mckpt::impl
