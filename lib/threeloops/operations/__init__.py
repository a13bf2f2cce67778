"""Operations: FLOPs, bytes and bounds of single operations, and the roofline that they stand under."""
