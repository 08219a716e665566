/** An archive that is not to be restored: which kind of trouble it is, and the reason as the end of a sentence. */
export class ArchiveRefused extends Error {
  override name = 'ArchiveRefused';
  readonly kind: 'damaged' | 'newer';
  readonly reason: string;

  constructor(reason: string, kind: 'damaged' | 'newer' = 'damaged') {
    super(reason);
    this.reason = reason;
    this.kind = kind;
  }
}
