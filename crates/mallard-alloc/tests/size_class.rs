//! Tests of the size classes of a multipool.

use mallard::size_class;

#[test]
fn the_size_classes_equal_the_list_in_the_specification() {
    let text = include_str!("../spec/size_classes.csv");
    let mut rows = 0;
    for (i, line) in text.lines().skip(1).enumerate() {
        let row: Vec<usize> = line.split(',').map(|field| field.trim().parse().unwrap()).collect();
        assert_eq!(row, [i, size_class::bytes(i), size_class::align(i)]);
        rows += 1;
    }
    assert_eq!(rows, size_class::of(32 << 10) + 1);
}

#[test]
fn the_class_of_a_size_is_the_smallest_with_room_for_it() {
    for bytes in 0..=40_000_usize {
        let class = size_class::of(bytes);
        assert!(size_class::bytes(class) >= bytes);
        assert!(class == 0 || size_class::bytes(class - 1) < bytes);
    }
}
