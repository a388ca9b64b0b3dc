//! A program as boxes and arrows: in Mermaid's language, and drawn as SVG in layers, each below what it reads.

use std::fmt::Write as _;

/// What a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A watched input.
    Input,
    /// An op.
    Op,
    /// An operand that is not on the tape.
    Constant,
}

impl Shape {
    /// The brackets that Mermaid draws the shape by.
    const fn brackets(self) -> (&'static str, &'static str) {
        match self {
            Self::Input => ("([", "])"),
            Self::Op => ("[", "]"),
            Self::Constant => ("(", ")"),
        }
    }

    const fn fill(self) -> &'static str {
        match self {
            Self::Input => "#cfe8ff",
            Self::Op => "#ffffff",
            Self::Constant => "#eeeeee",
        }
    }
}

#[derive(Debug)]
struct Item {
    shape: Shape,
    label: String,
    args: Vec<u32>,
}

/// Boxes in the order of a program, with arrows from what each reads.
#[derive(Debug)]
pub struct Chart {
    items: Vec<Item>,
    left_out: usize,
}

/// The longest label, in characters.
const LABEL: usize = 40;
const CHARACTER: usize = 8;
const HEIGHT: usize = 28;
const GAP_X: usize = 16;
const GAP_Y: usize = 32;
const MARGIN: usize = 12;

struct Place {
    x: usize,
    y: usize,
    width: usize,
}

impl Chart {
    /// A chart without boxes yet, which will say that so many entries are left out.
    #[must_use]
    pub fn new(left_out: usize) -> Self {
        Self { items: Vec::new(), left_out }
    }

    /// Adds a box; `args` are the positions of earlier ones.
    ///
    /// # Panics
    /// Where an argument is not an earlier box.
    pub fn add(&mut self, shape: Shape, label: String, args: &[u32]) {
        assert!(args.iter().all(|arg| (*arg as usize) < self.items.len()), "an argument is not in the chart");
        let label =
            if label.chars().count() > LABEL { label.chars().take(LABEL - 1).chain(['…']).collect() } else { label };
        self.items.push(Item { shape, label, args: args.to_vec() });
    }

    fn note(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("{} more entries", self.left_out))
    }

    /// The chart in Mermaid's language.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        for (at, item) in self.items.iter().enumerate() {
            let (open, close) = item.shape.brackets();
            let _ = writeln!(text, "    n{at}{open}\"{}\"{close}", escape(&item.label, "#", ";"));
            for arg in &item.args {
                let _ = writeln!(text, "    n{arg} --> n{at}");
            }
        }
        if let Some(note) = self.note() {
            let _ = writeln!(text, "    more[\"{note}\"]");
        }
        text
    }

    /// The chart as a drawing.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let places = self.places();
        let width = places.iter().map(|place| place.x + place.width).max().unwrap_or(0).max(160) + MARGIN;
        let bottom = places.iter().map(|place| place.y + HEIGHT).max().unwrap_or(MARGIN);
        let height = bottom + if self.left_out > 0 { GAP_Y } else { MARGIN };
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"12\">\n"
        );
        for (item, to) in self.items.iter().zip(&places) {
            for arg in &item.args {
                let from = &places[*arg as usize];
                let (x1, y1, x2) = (from.x + from.width / 2, from.y + HEIGHT, to.x + to.width / 2);
                let _ = writeln!(text, "<path d=\"M{x1} {y1}L{x2} {}\" stroke=\"#888888\"/>", to.y);
            }
        }
        for (item, Place { x, y, width }) in self.items.iter().zip(&places) {
            let (fill, label) = (item.shape.fill(), escape(&item.label, "&#", ";"));
            let (middle, line) = (x + width / 2, y + 18);
            let _ = writeln!(
                text,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" rx=\"5\" fill=\"{fill}\" \
                 stroke=\"#444444\"/><text x=\"{middle}\" y=\"{line}\" text-anchor=\"middle\">{label}</text>"
            );
        }
        if let Some(note) = self.note() {
            let _ = writeln!(text, "<text x=\"{MARGIN}\" y=\"{}\">{note}</text>", height - MARGIN);
        }
        text + "</svg>\n"
    }

    /// Where the boxes go: each in the layer below its lowest argument, from left to right.
    fn places(&self) -> Vec<Place> {
        let mut layers: Vec<usize> = Vec::with_capacity(self.items.len());
        let mut ends: Vec<usize> = Vec::new();
        let mut places = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let layer = item.args.iter().map(|arg| layers[*arg as usize] + 1).max().unwrap_or(0);
            layers.push(layer);
            if ends.len() <= layer {
                ends.resize(layer + 1, MARGIN);
            }
            let width = (item.label.chars().count() + 2) * CHARACTER;
            places.push(Place { x: ends[layer], y: MARGIN + layer * (HEIGHT + GAP_Y), width });
            ends[layer] += width + GAP_X;
        }
        places
    }
}

/// The text with what a language reads as its own written by number; control characters are left out.
fn escape(text: &str, before: &str, after: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars().filter(|character| !character.is_control()) {
        if matches!(character, '&' | '<' | '>' | '"' | '\'' | '#' | ';' | '`') {
            let _ = write!(escaped, "{before}{}{after}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(left_out: usize) -> Chart {
        let mut chart = Chart::new(left_out);
        chart.add(Shape::Input, "a<\"b\">".into(), &[]);
        chart.add(Shape::Constant, "2.0".into(), &[]);
        chart.add(Shape::Op, "v1 = multiply".into(), &[0, 1]);
        chart
    }

    #[test]
    fn mermaid_has_a_line_a_box_and_a_line_an_arrow() {
        let expected = "flowchart TD\n    n0([\"a#60;#34;b#34;#62;\"])\n    n1(\"2.0\")\n    n2[\"v1 = multiply\"]\n    \
                        n0 --> n2\n    n1 --> n2\n";
        assert_eq!(chart(0).to_mermaid(), expected);
        assert!(chart(7).to_mermaid().ends_with("more[\"7 more entries\"]\n"));
    }

    #[test]
    fn boxes_lie_below_what_they_read_and_beside_each_other() {
        let places = chart(0).places();
        assert_eq!(places[0].y, places[1].y);
        assert!(places[1].x >= places[0].x + places[0].width && places[2].y > places[0].y + HEIGHT);
    }

    #[test]
    fn svg_escapes_its_text() {
        let svg = chart(7).to_svg();
        assert!(svg.contains("a&#60;&#34;b&#34;&#62;") && svg.contains("7 more entries") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn a_long_label_is_cut() {
        let mut chart = Chart::new(0);
        chart.add(Shape::Input, "x".repeat(1000), &[]);
        assert!(chart.to_svg().len() < 1000);
    }
}
